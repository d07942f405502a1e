"""Arguments of declarations and bindings (a field table) as JSON, the form in which they are stored and sent.

Types that JSON does not have are wrapped: bytes as {"!bytes": base64}, a timestamp as {"!time": seconds}, a decimal as
{"!decimal": text}. Two tables are equal when their JSON is: keys are sorted.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

_EMPTY = b""


def dump(arguments: Mapping[str, Any]) -> bytes:
    """JSON of a field table; empty bytes for an empty one."""
    return json.dumps(arguments, default=_wrap, sort_keys=True).encode() if arguments else _EMPTY


def load(data: bytes) -> dict[str, Any]:
    """The field table that `dump` was given."""
    loaded: dict[str, Any] = json.loads(data, object_hook=_unwrap) if data else {}
    return loaded


def _wrap(value: object) -> dict[str, Any]:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"!bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime):
        return {"!time": int(value.timestamp())}
    if isinstance(value, Decimal):
        return {"!decimal": str(value)}
    raise TypeError(f"no field table value: {type(value).__name__}")


_UNWRAP: dict[str, Callable[[Any], Any]] = {
    "!bytes": base64.b64decode,
    "!time": lambda seconds: datetime.fromtimestamp(seconds, UTC),
    "!decimal": Decimal,
}


def _unwrap(table: dict[str, Any]) -> Any:  # noqa: ANN401 - a wrapped value becomes itself
    if len(table) == 1:
        [(key, value)] = table.items()
        if key in _UNWRAP:
            return _UNWRAP[key](value)
    return table
