"""Bodies of the content types amqp/map and amqp/list: values in the encoding of AMQP 0-10 (its section 3), as Qpid's
clients of every 0-x put maps and lists into messages. What is read of a type that JSON has not is its nearest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from services.common.errors import SyntaxFault
from services.common.message.bounds import LITTLE, MOST_READ

DEEPEST: Final = 50
"""Maps and lists within each other, of what is read."""
_DEEPEST_TOLD: Final = 140
"""Of what is written: arguments are 64 deep, each with a mark of its own, in an object, in a list."""

_SIZE: Final = struct.Struct(">I")
_LIST: Final = 0xA9
_MAP: Final = 0xA8
_ARRAY: Final = 0xAA
_ITS_OWN: Final = 0  # the type of a value that says it itself

_Read = Callable[[bytes], Any]


def load_map(body: bytes) -> dict[str, Any]:
    """Of a body, an empty one included; raises SyntaxFault for what is none."""
    return _whole(body, _MAP) if body else {}


def load_list(body: bytes) -> list[Any]:
    """The same of a list."""
    return _whole(body, _LIST) if body else []


def dump(value: Mapping[str, Any] | list[Any]) -> bytes:
    """A body; raises SyntaxFault for values that it cannot hold."""
    return _encoded(value, _DEEPEST_TOLD)[1:]


# ------------------------------------------------------------------ decoding


def _whole(body: bytes, code: int) -> Any:  # noqa: ANN401 - as the code says
    try:
        if len(body) > LITTLE and _has_many(body, code):
            raise SyntaxFault(f"more than {MOST_READ} values in a map or list")
        value, end = _value(code, body, 0, DEEPEST)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise SyntaxFault(f"no map or list of AMQP 0-10: {error}") from None
    if end != len(body):
        raise SyntaxFault("bytes behind a map or list of AMQP 0-10")
    return value


def _has_many(body: bytes, code: int) -> bool:
    """Whether there are more values, within each other, than are read at once."""
    position, waiting = 0, [(1, False, code)]  # how many, whether each has a name, and their type if that is one
    for _ in range(MOST_READ):
        if not waiting:
            return False
        count, named, its = waiting.pop()
        waiting += [(count - 1, named, its)] * (count > 1)
        position += 1 + body[position] if named else 0
        if not its:
            its, position = body[position], position + 1
        if its in (_MAP, _LIST):
            count, position, _ = _counted(body, position)
            waiting += [(count, its == _MAP, _ITS_OWN)] * (count > 0)
        elif its == _ARRAY:
            its, count, position = _alike(body, position)
            waiting += [(count, False, its)] * (count > 0)
        else:
            position = _bounds(its, body, position)[1]
    return bool(waiting)


def _value(code: int, data: bytes, position: int, depth: int) -> tuple[Any, int]:
    """The width of a value is in the upper half of its code (0-10, section 3.2)."""
    if code in _COMPOUND:
        if not depth:
            raise SyntaxFault(f"more than {DEEPEST} maps and lists within each other")
        return _COMPOUND[code](data, position, depth - 1)
    start, end = _bounds(code, data, position)
    if end > len(data):
        raise SyntaxFault("a value of AMQP 0-10 ends early")
    return _READERS.get(code, _text)(data[start:end]), end


def _bounds(code: int, data: bytes, position: int) -> tuple[int, int]:
    if code < 0x80:
        return position, position + (1 << (code >> 4))
    if code in _ODD:
        return position, position + _ODD[code]
    width = {0x8: 1, 0x9: 2, 0xA: 4}.get(code >> 4)
    if width is None:
        raise SyntaxFault(f"no type of AMQP 0-10 is {code:#04x}")
    start = position + width
    if start > len(data):
        raise SyntaxFault("a value of AMQP 0-10 ends early")
    return start, start + int.from_bytes(data[position:start], "big")


def _counted(data: bytes, position: int) -> tuple[int, int, int]:
    """How many there are, where they begin, and where they end; one of no bytes has none."""
    (size,) = _SIZE.unpack_from(data, position)
    end = position + 4 + size
    if end > len(data):
        raise SyntaxFault("a map or list of AMQP 0-10 ends early")
    return (_SIZE.unpack_from(data, position + 4)[0], position + 8, end) if size else (0, end, end)


def _map(data: bytes, position: int, depth: int) -> tuple[dict[str, Any], int]:
    count, position, end = _counted(data, position)
    found: dict[str, Any] = {}
    for _ in range(count):
        start = position + 1
        position = start + data[position]
        name = data[start:position].decode()
        found[name], position = _value(data[position], data, position + 1, depth)
    return found, _ended(position, end)


def _list(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    count, position, end = _counted(data, position)
    found: list[Any] = []
    for _ in range(count):
        value, position = _value(data[position], data, position + 1, depth)
        found.append(value)
    return found, _ended(position, end)


def _array(data: bytes, position: int, depth: int) -> tuple[list[Any], int]:
    """One type for all, before their number."""
    end = position + 4 + int(_SIZE.unpack_from(data, position)[0])
    code, count, position = _alike(data, position)
    found: list[Any] = []
    for _ in range(count):
        value, position = _value(code, data, position, depth)
        found.append(value)
    return found, _ended(position, end)


def _alike(data: bytes, position: int) -> tuple[int, int, int]:
    """The type of an array, how many there are, and where they begin; one of no bytes has none."""
    (size,) = _SIZE.unpack_from(data, position)
    if not size:
        return _LIST, 0, position + 4
    code, count = data[position + 4], int(_SIZE.unpack_from(data, position + 5)[0])
    if count > size:
        raise SyntaxFault("an array of AMQP 0-10 ends early")
    return code, count, position + 9


def _ended(position: int, end: int) -> int:
    if position != end:
        raise SyntaxFault("a map or list of AMQP 0-10 has another size than it says")
    return end


def _text(data: bytes) -> str:
    """Of strings, and of binaries: JSON has no others."""
    return data.decode(errors="replace")


def _number(*, signed: bool) -> _Read:
    return lambda data: int.from_bytes(data, "big", signed=signed)


_ODD: Final = {0xC0: 5, 0xC8: 5, 0xD0: 9, 0xD8: 9, 0xF0: 0, 0xF1: 0}
_COMPOUND: Final[Mapping[int, Callable[[bytes, int, int], tuple[Any, int]]]] = {
    _MAP: _map,
    _LIST: _list,
    _ARRAY: _array,
}
_READERS: Final[Mapping[int, _Read]] = {
    **dict.fromkeys((0x01, 0x11, 0x21, 0x31), _number(signed=True)),
    **dict.fromkeys((0x02, 0x12, 0x22, 0x32, 0x38), _number(signed=False)),
    0x08: lambda data: data != b"\0",
    0x23: lambda data: struct.unpack(">f", data)[0],
    0x27: lambda data: data.decode("utf-32-be"),
    0x33: lambda data: struct.unpack(">d", data)[0],
    0x48: lambda data: str(UUID(bytes=data)),
    **dict.fromkeys((0x84, 0x94), lambda data: data.decode("latin-1")),
    **dict.fromkeys((0x86, 0x96), lambda data: data.decode("utf-16-be")),
    0xF0: lambda _data: None,
    0xF1: lambda _data: True,
}


# ------------------------------------------------------------------ encoding


def _encoded(value: object, depth: int) -> bytes:
    """With its code first."""
    if not depth:
        raise SyntaxFault(f"more than {_DEEPEST_TOLD} maps and lists within each other")
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, depth - 1)
    raise SyntaxFault(f"AMQP 0-10 has no {type(value).__name__}")


def _string(value: str, _depth: int) -> bytes:
    raw = value.encode(errors="replace")
    if len(raw) < 1 << 16:
        return struct.pack(">BH", 0x95, len(raw)) + raw
    return struct.pack(">BI", 0xA0, len(raw)) + raw


def _integer(value: int, _depth: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return struct.pack(">Bi", 0x21, value)
    if -(1 << 63) <= value < 1 << 63:
        return struct.pack(">Bq", 0x31, value)
    if 0 <= value < 1 << 64:  # a timestamp that no calendar has
        return struct.pack(">BQ", 0x32, value)
    raise SyntaxFault(f"{value} does not fit in 64 bits")


def _entries(code: int, entries: list[bytes]) -> bytes:
    octets = _SIZE.pack(len(entries)) + b"".join(entries)
    return bytes((code,)) + _SIZE.pack(len(octets)) + octets


def _mapping(value: Mapping[str, Any], depth: int) -> bytes:
    return _entries(_MAP, [_key(name) + _encoded(each, depth) for name, each in value.items()])


def _key(name: str) -> bytes:
    raw = name.encode(errors="replace")
    if len(raw) > 255:
        raise SyntaxFault("a key is longer than 255 bytes")
    return bytes((len(raw),)) + raw


# In this order: a bool is an int as well.
_WRITERS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any, int], bytes]], ...]] = (
    (str, _string),
    (bool, lambda value, _: b"\x08\x01" if value else b"\x08\x00"),
    (int, _integer),
    (float, lambda value, _: struct.pack(">Bd", 0x33, value)),
    (type(None), lambda _value, _: b"\xf0"),
    (Mapping, _mapping),
    ((list, tuple), lambda value, depth: _entries(_LIST, [_encoded(each, depth) for each in value])),
)
