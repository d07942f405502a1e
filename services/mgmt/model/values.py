"""Values as attributes and parameters want them: what JSON, or a text that JSON or a person wrote, stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from services.mgmt.model.attribute import Attribute
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.strict_json import strict

_WANTED: Mapping[type, str] = {
    bool: "true or false is wanted",
    int: "an integer is wanted",
    float: "a number is wanted",
    str: "a text is wanted",
    list: "a list is wanted",
    dict: "a map is wanted",
}


def converted(declared: Attribute, value: object, where: str) -> Any:  # noqa: ANN401 - each kind its own
    """Raises IllegalConfiguration that says what is wanted; a secret is not repeated."""
    what = f"attribute '{declared.name}' of {where}"
    result = of_kind(declared.kind, value, what, secret=declared.secure)
    if declared.kind is list and not all(isinstance(each, str) for each in result):
        raise IllegalConfiguration(f"{what}: a list of texts is wanted")
    valid = declared.valid_values
    if valid and (wrong := [each for each in (result if declared.kind is list else [result]) if each not in valid]):
        raise IllegalConfiguration(f"{what}: one of {', '.join(valid)} is wanted, not {wrong[0]!r}")
    return result


def of_kind(kind: type, value: object, what: str, *, secret: bool = False) -> Any:  # noqa: ANN401 - each kind its own
    """The same of a parameter."""
    try:
        return _READ[kind](value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        said = "" if secret or kind is dict else f", not {value!r}"  # maps may have secrets in them
        raise IllegalConfiguration(f"{what}: {_WANTED[kind]}{said}") from None


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value).lower()] if isinstance(value, str) else _refused()


def _integer(value: object) -> int:
    return _refused() if isinstance(value, bool | float) else int(value)  # type: ignore[call-overload, no-any-return]


def _number(value: object) -> float:
    return _refused() if isinstance(value, bool) else float(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return (
        str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else _refused()
    )


def _json(kind: type) -> Callable[[object], Any]:
    def read(value: object) -> Any:  # noqa: ANN401 - list or dict
        loaded = strict(value) if isinstance(value, str) else value
        return loaded if isinstance(loaded, kind) else _refused()

    return read


def _refused() -> Any:  # noqa: ANN401 - it does not return
    raise ValueError


_READ: Mapping[type, Callable[[object], Any]] = {
    bool: lambda value: _known(_boolean, value),
    int: _integer,
    float: _number,
    str: _text,
    list: _json(list),
    dict: _json(dict),
}


def _known(read: Callable[[object], bool], value: object) -> bool:
    try:
        return read(value)
    except KeyError:
        raise ValueError from None
