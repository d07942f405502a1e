"""Between values of AMQP 1.0 and what all formats call headers: plain values of Python, by names that are text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import singledispatch
from typing import Any
from uuid import UUID

from services.common.message.amqp_1_0 import values as v

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WHOLE = range(-(1 << 63), 1 << 63)
_SIMPLE = (bool, int, float, str, bytes, UUID, type(None))


@singledispatch
def plain(value: Any) -> Any:  # noqa: ANN401 - any value
    """A value of AMQP's as Python's own."""
    return value  # None, or a boolean


for _type in (int, float, str, bytes):
    plain.register(_type)(_type)
plain.register(bool)(bool)
plain.register(UUID)(str)


@plain.register
def _(value: v.Timestamp) -> datetime | int:
    try:
        return _EPOCH + value * _MILLISECOND
    except OverflowError:  # no calendar has it
        return int(value)


@plain.register
def _(value: v.Described) -> Any:  # noqa: ANN401 - any value
    return plain(value.value)


@plain.register
def _(value: v.Array) -> list[Any]:
    return [plain(each) for each in value.values]


@plain.register
def _(value: list) -> list[Any]:  # type: ignore[type-arg]  # singledispatch takes bare types
    return [plain(each) for each in value]


@plain.register(dict)
def plain_map(values: Mapping[Any, Any]) -> dict[str, Any]:
    """A map with its keys as text."""
    return {str(plain(key)): plain(value) for key, value in values.items()}


@singledispatch
def typed(value: Any) -> Any:  # noqa: ANN401 - any value
    """A value of Python's as one that can be written; what no type fits is its text."""
    return value if isinstance(value, _SIMPLE) else str(value)


@typed.register
def _(value: int) -> int | str:
    return value if isinstance(value, bool) or value in _WHOLE else str(value)


@typed.register
def _(value: datetime) -> v.Timestamp:
    return v.Timestamp((value - _EPOCH) // _MILLISECOND)


@typed.register(list)
@typed.register(tuple)
def _(value: list[Any]) -> list[Any]:
    return [typed(each) for each in value]


@typed.register
def _(value: Mapping) -> dict[str, Any]:  # type: ignore[type-arg]  # singledispatch takes bare types
    return {str(key): typed(each) for key, each in value.items()}


def is_simple(value: Any) -> bool:  # noqa: ANN401 - any value
    """Whether application properties may have it (section 3.2.5)."""
    return isinstance(value, _SIMPLE)
