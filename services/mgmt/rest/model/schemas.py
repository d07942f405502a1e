"""What OpenAPI says of objects: made of what their classes declare."""

from __future__ import annotations

import json
from typing import Any

from services.mgmt.model.attribute import CONTENT, Attribute, Parameter
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.rest.model.paths import VERSIONS

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def response_of(kind: type[ConfiguredObject]) -> dict[str, Any]:
    """An object, or a list of them."""
    one = {
        "type": "object",
        "title": kind.category,
        "properties": _properties(kind) | {"statistics": _statistics(kind)},
    }
    many = {"type": "array", "items": one}
    content = _json({"anyOf": [one, many, {}]})
    if any(each.returns == CONTENT for each in kind.operations.values()):
        content["*/*"] = {"schema": {"type": "string", "format": "binary", "description": "a message"}}
    return {"description": f"{kind.category}, or a list", "content": content}


def placed(path: str, names: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - of an operation
    """Parameters of a path, which no function names; `names` says what it is made of."""
    version = parameter("version", {"type": "string", "enum": list(VERSIONS)}, "of Broker-J's REST")
    its = [parameter("path", {"type": "string", "minLength": 1}, names)] if "{path" in path else []
    return {"parameters": [version, *its], **more}


def parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    """One of a path."""
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": description}


def body_of(kind: type[ConfiguredObject]) -> dict[str, Any]:
    """What can be set of one, or the arguments of an operation."""
    told = {name: its for name, its in _properties(kind).items() if not kind.attributes[name].derived}
    return {"requestBody": {"content": _json({"type": "object", "title": f"{kind.category}ToBe", "properties": told})}}


def operations_of(kind: type[ConfiguredObject], *, modifying: bool) -> str:
    """Those that are carried out by a method, each with its parameters: a text that tells what can be asked."""
    its = [each for each in kind.operations.values() if each.modifying is modifying]
    return "\n".join(
        f"- `{each.name}({', '.join(map(_parameter, each.parameters.items()))})`: {each.description}" for each in its
    )


def _parameter(named: tuple[str, Parameter]) -> str:
    name, its = named
    return f"{name}: {_TYPES[its.kind]}{'' if its.mandatory else f' = {json.dumps(its.default)}'}"


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _properties(kind: type[ConfiguredObject]) -> dict[str, Any]:
    return {name: _schema(declared) for name, declared in kind.attributes.items()}


def _schema(declared: Attribute) -> dict[str, Any]:
    found: dict[str, Any] = {"type": _TYPES[declared.kind], "description": declared.description}
    if declared.kind is list:
        found["items"] = {}
    elif valid := declared.valid_values:
        found["enum"] = list(valid)
    if declared.derived:
        found["readOnly"] = True
    return found


def _statistics(kind: type[ConfiguredObject]) -> dict[str, Any]:
    told = {name: {"type": "integer", "description": each.description} for name, each in kind.statistics.items()}
    return {"type": "object", "properties": told}
