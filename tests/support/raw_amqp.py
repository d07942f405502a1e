"""Methods and contents of AMQP 0-9-1 whose field tables are given as bytes: what no client library would write."""

from __future__ import annotations

import struct

from tests.support.field_tables import sized

EMPTY = sized(b"", b"")


def short(text: str) -> bytes:
    raw = text.encode()
    return bytes((len(raw),)) + raw


def table(**fields: bytes) -> bytes:
    """A field table of encoded values; `_` in a name stands for `-`."""
    return sized(b"", b"".join(short(name.replace("_", "-")) + value for name, value in fields.items()))


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(class_id: int, method_id: int, *arguments: bytes, channel: int = 1) -> bytes:
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + b"".join(arguments))


def declare_queue(name: str, arguments: bytes = EMPTY, *, durable: bool = False) -> bytes:
    return method(50, 10, b"\0\0", short(name), bytes((2 if durable else 0,)), arguments)


def declare_exchange(name: str, kind: str, arguments: bytes = EMPTY, *, auto_delete: bool = False) -> bytes:
    return method(40, 10, b"\0\0", short(name), short(kind), bytes((4 if auto_delete else 0,)), arguments)


def bind_queue(queue: str, exchange: str, key: str, arguments: bytes = EMPTY) -> bytes:
    return method(50, 20, b"\0\0", short(queue), short(exchange), short(key), b"\0", arguments)


def unbind_queue(queue: str, exchange: str, key: str, arguments: bytes = EMPTY) -> bytes:
    return method(50, 50, b"\0\0", short(queue), short(exchange), short(key), arguments)


def bind_exchange(destination: str, source: str, key: str, arguments: bytes = EMPTY) -> bytes:
    return method(40, 30, b"\0\0", short(destination), short(source), short(key), b"\0", arguments)


def delete_queue(name: str) -> bytes:
    return method(50, 40, b"\0\0", short(name), b"\0")


def delete_exchange(name: str) -> bytes:
    return method(40, 20, b"\0\0", short(name), b"\0")


def consume(queue: str, arguments: bytes = EMPTY, *, tag: str = "") -> bytes:
    return method(60, 20, b"\0\0", short(queue), short(tag), b"\0", arguments)


def publish(body: bytes, key: str, *, exchange: str = "", headers: bytes | None = None, expiration: str = "") -> bytes:
    """A whole content, with these two properties and no others."""
    flags = (0x2000 if headers is not None else 0) | (0x0100 if expiration else 0)
    properties = struct.pack(">H", flags) + (headers or b"") + (short(expiration) if expiration else b"")
    head = struct.pack(">HHQ", 60, 0, len(body)) + properties
    return (
        method(60, 40, b"\0\0", short(exchange), short(key), b"\0")
        + frame(2, 1, head)
        + (frame(3, 1, body) if body else b"")
    )
