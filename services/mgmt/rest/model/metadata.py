"""/service/metadata and /service/structure, as Broker-J's console reads them: categories, and all objects."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from services.mgmt.model.attribute import KINDS, Attribute, Operation
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.tree.tree import Tree


def metadata(tree: Tree) -> dict[str, Any]:
    """Category → type → attributes, statistics, operations, valid types of children."""
    return {each.kind.category: _category(tree, name, each.kind) for name, each in sorted(tree.categories.items())}


def _category(tree: Tree, name: str, kind: type[ConfiguredObject]) -> dict[str, Any]:
    below = {
        tree.categories[each].kind.category: list(tree.categories[each].kind.types) for each in tree.children_of(name)
    }
    statistics = {
        each.name: {
            "name": each.name,
            "description": each.description,
            "units": each.units,
            "statisticType": "CUMULATIVE" if each.cumulative else "POINT_IN_TIME",
        }
        for each in kind.statistics.values()
    }
    return {
        type_: {
            "attributes": {key: _attribute(each) for key, each in kind.attributes.items() if _has(each, type_)},
            "statistics": statistics,
            "operations": {key: _operation(each) for key, each in kind.operations.items()},
            "managedInterfaces": [],
            "validChildTypes": below,
            "contextDependencies": dict(kind.context_defaults),
        }
        for type_ in kind.types or (kind.category,)
    }


def _has(declared: Attribute, type_: str) -> bool:
    return not declared.types or type_ in declared.types


def _attribute(each: Attribute) -> dict[str, Any]:
    told: dict[str, Any] = {"type": KINDS[each.kind], "description": each.description}
    flags = {"mandatory": each.mandatory, "immutable": each.immutable, "secure": each.secure, "derived": each.derived}
    told |= {name: True for name, said in {**flags, "oversize": each.oversize}.items() if said}
    if each.default is not None:
        told["defaultValue"] = each.default
    if each.valid_values:
        told["validValues"] = list(each.valid_values)
    return told


def _operation(each: Operation) -> dict[str, Any]:
    parameters = {
        name: {"type": KINDS[its.kind], "mandatory": its.mandatory}
        | ({} if its.default is None else {"defaultValue": its.default})
        for name, its in each.parameters.items()
    }
    return {
        "name": each.name,
        "description": each.description,
        "returnType": each.returns,
        "nonModifying": not each.modifying,
        "parameters": parameters,
    }


def structure(tree: Tree, found: ConfiguredObject, visible: Collection[str]) -> Iterator[str]:
    """Ids and names of an object, and of all below it of what may be looked at: JSON in parts."""
    yield json.dumps({"id": found.value("id"), "name": found.value("name")}).removesuffix("}")
    for category, below in tree.below_in_steps(found):
        if category in visible:
            yield from _structures(tree, category, below, visible)
    yield "}"


def _structures(
    tree: Tree, category: str, below: Iterable[ConfiguredObject | None], visible: Collection[str]
) -> Iterator[str]:
    """Of one category; nothing where there is none."""
    before = f',"{category}s":['
    for each in below:
        if each is None:  # more have to be made yet
            yield ""
            continue
        yield before
        yield from structure(tree, each, visible)
        before = ","
    if before == ",":
        yield "]"
