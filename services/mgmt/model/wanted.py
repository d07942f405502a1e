"""Attributes wanted for an object, checked against the declarations of its class. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.mgmt.model.attribute import MASK, Attribute
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.values import converted, of_kind

Wanted = dict[str, Any]


def to_create(kind: type[ConfiguredObject], said: Mapping[str, Any], parent: ConfiguredObject | None) -> Wanted:
    """Converted, with what variables stand for. Raises IllegalConfiguration that names the attribute."""
    wanted = _read(kind, said, parent)
    type_ = wanted.get("type", kind.types[0] if kind.types else "")
    for declared in kind.attributes.values():
        has = not declared.types or type_ in declared.types
        if has and declared.mandatory and not declared.derived and _is_missing(wanted.get(declared.name)):
            raise IllegalConfiguration(f"attribute '{declared.name}' of {kind.category}: it is mandatory")
    for name in wanted:
        if kind.attributes[name].derived:
            raise IllegalConfiguration(f"attribute '{name}' of {kind.category}: it is derived, nobody sets it")
    _check_sort(kind, wanted)
    return wanted


def _check_sort(kind: type[ConfiguredObject], wanted: Wanted) -> None:
    """What is asked for, and would be something else, is not made. Raises IllegalConfiguration."""
    of_all, types = kind.attributes["type"] is ConfiguredObject.attributes["type"], kind.types
    if of_all and types and (type_ := wanted.get("type", types[0])) not in types:
        raise IllegalConfiguration(
            f"attribute 'type' of {kind.category}: one of {', '.join(types)} is wanted, not {type_!r}"
        )
    for name in () if kind.passing else ("durable", "lifetimePolicy"):
        default = kind.attributes[name].default
        if wanted.get(name, default) != default:
            said = str(default).lower() if default is True else default
            raise IllegalConfiguration(f"attribute '{name}' of {kind.category}: it is {said} of all of them")


def to_update(found: ConfiguredObject, said: Mapping[str, Any]) -> Wanted:
    """What differs from what it is like. Raises IllegalConfiguration for what cannot be changed."""
    kind = type(found)
    wanted = _read(
        kind, {name: _default(kind, name) if value is None else value for name, value in said.items()}, found
    )
    changes = {name: value for name, value in wanted.items() if not _is_so(found, name, value)}
    for name in changes:
        if found.attributes[name].derived or found.attributes[name].immutable:
            what = "derived, nobody sets it" if found.attributes[name].derived else "fixed when it is created"
            raise IllegalConfiguration(f"attribute '{name}' of {found.category} '{found.value('name')}': it is {what}")
    return changes


def _default(kind: type[ConfiguredObject], name: str) -> Any:  # noqa: ANN401 - each its own
    """What null means: as if nobody had set it."""
    declared = kind.attributes.get(name)
    if declared is None or declared.derived or declared.immutable:
        return None
    return {} if declared.default is None and declared.kind is dict else declared.default


def arguments_for(found: ConfiguredObject, operation: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Of an operation. Raises IllegalConfiguration that names the parameter."""
    parameters = found.operations[operation].parameters
    if unknown := said.keys() - parameters.keys():
        there = ", ".join(parameters) or "none"
        raise IllegalConfiguration(f"parameter '{min(unknown)}' of {operation}: there is none; there are {there}")
    told = {name: of_kind(parameters[name].kind, value, f"parameter '{name}'") for name, value in said.items()}
    if missing := [name for name, each in parameters.items() if each.mandatory and name not in told]:
        raise IllegalConfiguration(f"parameter '{missing[0]}' of {operation}: it is mandatory")
    return {name: each.default for name, each in parameters.items() if each.default is not None} | told


def _read(kind: type[ConfiguredObject], said: Mapping[str, Any], seen_from: ConfiguredObject | None) -> Wanted:
    if unknown := said.keys() - kind.attributes.keys():
        raise IllegalConfiguration(f"attribute '{min(unknown)}' of {kind.category}: there is none of that name")
    where = kind.category
    return {
        name: _value(kind.attributes[name], value, where, seen_from)
        for name, value in said.items()
        if value is not None
    }


def _value(declared: Attribute, value: object, where: str, seen_from: ConfiguredObject | None) -> Any:  # noqa: ANN401 - each its own
    # A password may hold any characters; what is kept as it is counts as variables are then.
    kept = declared.secure or declared.name in {"name", "description", "context", "rules"}
    if isinstance(value, str) and not kept and seen_from:
        value = seen_from.interpolated(value)
    result = converted(declared, value, where)
    if declared.name == "context" and not all(isinstance(each, str) for each in result.values()):
        raise IllegalConfiguration(f"attribute 'context' of {where}: texts are wanted")
    return result


def _is_so(found: ConfiguredObject, name: str, value: object) -> bool:
    if found.attributes[name].secure:
        return value == MASK
    return bool(found.value(name) == value)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)
