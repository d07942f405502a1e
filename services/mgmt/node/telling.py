"""An object as the management node tells it: a map of attributes, after those that all have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.rendering import Options, attributes_told
from services.mgmt.node.exchanged import Asked
from services.mgmt.node.kinds import Type, above, itself, name_of
from services.mgmt.node.places import OBJECT_PATH, below

QPID_TYPE: Final = "qpid-type"
STANDARD: Final = ("identity", "type", QPID_TYPE, OBJECT_PATH)
_OTHERWISE: Final = frozenset({"id", "type"})
"""Attributes that are told by other names."""


def told(found: ConfiguredObject, asked: Asked, *, actuals: bool) -> dict[str, Any]:
    """`actuals`: as it was set, and no more; else also what it is by default, and what is known besides."""
    qpid_type = found.value("type")
    attributes = {
        "identity": found.value("id"),
        OBJECT_PATH: below(found, asked),
        "type": name_of(type(found), qpid_type),
        QPID_TYPE: qpid_type,
    }
    if found.parent and len(found.parent.path) > len(above(asked.virtual_host)):
        attributes[found.parent.category.lower()] = found.parent.actual["name"]
    shown = Options(actuals=actuals, oversize=0)
    return attributes | {name: value for name, value in attributes_told(found, shown) if name not in _OTHERWISE}


def names_of(types: Iterable[Type], asked: Asked) -> list[str]:
    """Of the attributes that objects of these types may have, those first that all have."""
    fixed = {itself(asked.virtual_host), "", "broker", "virtualhostnode"}
    return list(dict.fromkeys((*STANDARD, *(name for each in types for name in _own(each, fixed)))))


def _own(type_: Type, fixed: AbstractSet[str]) -> Iterator[str]:
    """And what it is below, but where that is the same of all."""
    yield from (name for name, its in type_.kind.attributes.items() if name not in _OTHERWISE and type_.has(its))
    if (parent := type_.kind.parent_kind.lower()) not in fixed:
        yield parent
