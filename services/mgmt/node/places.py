"""Where an object is: by its path of names below the virtual host, or by its identity. Pure, but for the tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from services.common.errors import NotFound, SyntaxFault
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.node.exchanged import Asked
from services.mgmt.node.kinds import Type, above
from services.mgmt.tree.tree import Tree

OBJECT_PATH: Final = "object-path"
_SLASH: Final = re.compile(r"(?<!\\)/")


def names_in(path: str) -> tuple[str, ...]:
    r"""The elements of an object path: between slashes, of which one in a name is written \/."""
    return tuple(re.sub(r"\\(.)", r"\1", each, flags=re.DOTALL) for each in _SLASH.split(path)) if path else ()


def path_of(names: Iterable[str]) -> str:
    """The same the other way round."""
    return "/".join(re.sub(r"([/\\])", r"\\\1", each) for each in names)


def said(asked: Asked, *, named: bool) -> tuple[str, Any]:
    """How a request says which object it means: "identity" or "object-path", and which. Raises SyntaxFault.

    With `named` a name alone does, as AMQP Management has it; else it is an argument.
    """
    properties = asked.properties
    if "identity" in properties:
        return "identity", properties["identity"]
    if index := asked.text("index"):
        if index != OBJECT_PATH:
            raise SyntaxFault(f"Unknown index: '{index}'")
        return OBJECT_PATH, asked.text("key")
    if named and (name := asked.text("name")):
        return OBJECT_PATH, name
    raise SyntaxFault("Either identity or index must be specified")


def place(tree: Tree, asked: Asked, type_: Type, *, named: bool = True) -> tuple[str, ...]:
    """The path in the tree of what a request means, which need not be there. Raises NotFound for an identity."""
    by, which = said(asked, named=named)
    if by == OBJECT_PATH:
        return *above(asked.virtual_host), *names_in(which)
    identity = _identity(which)
    for each in tree.find(type_.category, above(asked.virtual_host)):
        if each.value("id") == identity:
            return each.path
    raise NotFound(f"no {type_.kind.category} with the identity '{which}'")


def _identity(said: object) -> str:
    try:
        return str(UUID(str(said)))
    except ValueError:
        raise SyntaxFault(f"identity: a UUID is wanted, not {said!r}") from None


def below(found: ConfiguredObject, asked: Asked) -> str:
    """The object path of an object."""
    return path_of(found.path[len(above(asked.virtual_host)) :])
