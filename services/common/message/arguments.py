"""Arguments of declarations and bindings (a field table) as JSON, the form in which they are stored and sent.

A value that JSON does not have is a table with one key that begins with "!": bytes are {"!bytes": base64}, a timestamp
{"!time": seconds}, a decimal {"!decimal": text}, a float that is no number {"!float": text}. A client's own table that
looks like that is {"!table": what it is}, so that none is taken for a value. Two tables are equal when their JSON is:
keys are sorted.

Records that were written before there was "!table" are read too: what no value is written as is a client's own table.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from services.common.errors import SyntaxFault
from services.common.message import field_table

_EMPTY = b""
_OURS = "!"
_TABLE = "!table"


def dump(arguments: Mapping[str, Any]) -> bytes:
    """JSON of a field table; empty bytes for an empty one."""
    if not arguments:
        return _EMPTY
    table = {name: _wrap(value) for name, value in arguments.items()}
    return json.dumps(table, sort_keys=True, allow_nan=False).encode()


def load(data: bytes) -> dict[str, Any]:
    """The field table that `dump` was given; raises SyntaxFault for bytes that it never gave."""
    if not data:
        return {}
    try:
        loaded = json.loads(data)
        if not isinstance(loaded, dict):
            raise SyntaxFault("arguments that are no table")
        return _read_table(loaded)
    except (ValueError, RecursionError) as error:
        raise SyntaxFault(f"arguments that cannot be read: {error}") from None


def declared(data: bytes) -> dict[str, Any]:
    """As `load`, of a thing to be. Raises SyntaxFault also for what no field table holds: no client could be told."""
    table = load(data)
    if table:
        field_table.encode(table)
    return table


def _wrap(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    for kinds, wrap in _WRAP:
        if isinstance(value, kinds):
            return wrap(value)
    raise TypeError(f"no field table value: {type(value).__name__}")


def _wrap_table(table: Mapping[str, Any]) -> dict[str, Any]:
    wrapped = {name: _wrap(value) for name, value in table.items()}
    return {_TABLE: wrapped} if _only_key(wrapped).startswith(_OURS) else wrapped


_WRAP: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((str, int, type(None)), lambda value: value),  # a bool is an int as well
    (float, lambda value: value if math.isfinite(value) else {"!float": str(value)}),
    ((bytes, bytearray, memoryview), lambda value: {"!bytes": base64.b64encode(bytes(value)).decode()}),
    (datetime, lambda value: {"!time": int(value.timestamp())}),
    (Decimal, lambda value: {"!decimal": str(value)}),
    ((list, tuple), lambda values: [_wrap(each) for each in values]),
    (Mapping, _wrap_table),
)


def _only_key(table: Mapping[str, Any]) -> str:
    return next(iter(table)) if len(table) == 1 else ""


def _finite(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return value


_UNWRAP: dict[str, Callable[[Any], Any]] = {
    "!bytes": base64.b64decode,
    "!time": lambda seconds: datetime.fromtimestamp(seconds, UTC),
    "!decimal": _finite,
    "!float": float,
}


def _read(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    if isinstance(value, list):
        return [_read(each) for each in value]
    if not isinstance(value, dict):
        return value
    key = _only_key(value)
    if key == _TABLE and isinstance(value[key], dict):
        return _read_table(value[key])
    return _unwrapped(key, value) if key in _UNWRAP else _read_table(value)


def _read_table(table: dict[str, Any]) -> dict[str, Any]:
    return {name: _read(value) for name, value in table.items()}


def _unwrapped(key: str, table: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    try:
        value = _UNWRAP[key](table[key])
        if json.dumps(_wrap(value)) == json.dumps(table):
            return value
    except (ValueError, TypeError, ArithmeticError, OSError):
        pass
    return _read_table(table)
