"""The content header's properties that streams of the benchmark use (section 4.2.6.1), and tables (4.2.5.5)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from benchmarks.wire import long, short

# Of the class basic: the flag of each, in the order in which the values follow.
_HEADERS, _DELIVERY_MODE, _PRIORITY, _EXPIRATION, _MESSAGE_ID = 0x2000, 0x1000, 0x0800, 0x0100, 0x0080


def properties(
    *,
    persistent: bool = False,
    headers: bytes | None = None,
    priority: int | None = None,
    expiration: str | None = None,
    message_id: str | None = None,
) -> bytes:
    """Flags and values; `headers` as `table` gives them, `expiration` in milliseconds."""
    values = (
        (_HEADERS, headers),
        (_DELIVERY_MODE, bytes([2 if persistent else 1])),
        (_PRIORITY, None if priority is None else bytes([priority])),
        (_EXPIRATION, None if expiration is None else short(expiration)),
        (_MESSAGE_ID, None if message_id is None else short(message_id)),
    )
    flags = sum([flag for flag, value in values if value is not None])
    return struct.pack(">H", flags) + b"".join([value for _, value in values if value is not None])


def table(fields: Mapping[str, str | int]) -> bytes:
    """A table of long strings, 32-bit numbers and booleans."""
    encoded = b"".join([short(name) + _field(value) for name, value in fields.items()])
    return long(encoded)


def _field(value: str | int) -> bytes:
    if isinstance(value, bool):
        return b"t" + bytes([value])
    return b"I" + struct.pack(">i", value) if isinstance(value, int) else b"S" + long(value.encode())
