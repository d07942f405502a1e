"""A peer that sends something without end fills no memory, whether it reads our answers or not (section 10.5)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import pytest
from hpack import Decoder

from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.frames import FrameReader
from tests.support.http2_transcript import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    REQUEST,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    Transcript,
    client,
    frame,
    grow,
    long,
    messages,
    read,
    server,
    settings,
)

Flood = Callable[[Transcript, int], bytes]
_TIMES = 2000
_ALLOWED = 8 << 10  # octets: tables are full before it is looked at
_OWED = 640 << 10  # answers that the peer does not read


def _size(connection: Http2Connection) -> int:
    """Octets of all that hangs on a connection."""
    seen: dict[int, object] = {}
    found: list[object] = [connection]
    while found:
        thing = found.pop()
        code = isinstance(thing, type | ModuleType | FunctionType | MethodType | BuiltinFunctionType)
        if not code and id(thing) not in seen:
            seen[id(thing)] = thing
            found += gc.get_referents(thing)
    return sum(map(sys.getsizeof, seen.values()))


def _new(number: int) -> int:
    return 2 * number + 101


def _asked_anew(one: Transcript, number: int) -> bytes:
    fields = [*REQUEST, (f"x-{number}", "y" * 100)]
    return one.headers(_new(number), fields) + frame(RST_STREAM, 0, _new(number), long(8))


_FLOODS: dict[str, Flood] = {
    "PING": lambda one, _: frame(PING, 0, 0, bytes(8)),
    "PING that are answers": lambda one, _: frame(PING, ACK, 0, bytes(8)),
    "SETTINGS": lambda one, number: settings(initial_window_size=number),
    "SETTINGS of tables": lambda one, number: settings(table_size=number % 2 * 4096),
    "SETTINGS that are answers": lambda one, _: frame(SETTINGS, ACK),
    "SETTINGS that nobody knows": lambda one, number: frame(SETTINGS, 0, 0, long(0xABCD0000 + number) + bytes(2)),
    "windows": lambda one, _: grow(1, 1) + grow(0, 1),
    "priorities": lambda one, number: frame(PRIORITY, 0, _new(number), bytes(5)),
    "unknown frames": lambda one, number: frame(0xAB, 0, number, bytes(100)),
    "DATA that is empty": lambda one, _: frame(DATA, 0, 1),
    "DATA that is padding": lambda one, _: frame(DATA, PADDED, 1, b"\xff" + bytes(255)),
    "DATA of a message": lambda one, _: frame(DATA, 0, 1, messages(bytes(1000))),
    "requests": lambda one, number: one.headers(_new(number), REQUEST),
    "requests that are reset": _asked_anew,
    "requests that are refused": lambda one, number: one.headers(_new(number), REQUEST) + grow(_new(number), 0),
    "GOAWAY": lambda one, _: frame(GOAWAY, 0, 0, bytes(8) + b"x" * 100),
}


@pytest.mark.parametrize("flood", _FLOODS.values(), ids=_FLOODS)
def test_a_flood_leaves_nothing_behind(flood: Flood) -> None:
    """From a peer that reads; ours does not grow with the number of frames."""
    one = server().opened()
    for number in range(200):  # which fill tables, and open as many streams as may be
        one.peer(flood(one, number))
        one.raw()
    before = _size(one.connection)
    for number in range(200, 200 + _TIMES):
        one.peer(flood(one, number))
        one.raw()
    assert _size(one.connection) - before < _ALLOWED


@pytest.mark.parametrize("flood", _FLOODS.values(), ids=_FLOODS)
def test_a_flood_that_does_not_read(flood: Flood) -> None:
    """What it is owed is bounded: it is told to calm down, or gets nothing."""
    one = server().opened()
    before = _size(one.connection)
    assert _told(one, flood) in (None, ErrorCode.ENHANCE_YOUR_CALM)
    assert _size(one.connection) - before < _OWED


def _told(one: Transcript, flood: Flood) -> ErrorCode | None:
    try:
        for number in range(_TIMES):
            one.peer(flood(one, number))
    except ConnectionFault as fault:
        return fault.code
    return None


@pytest.mark.parametrize("part", [b"", b"\0"], ids=["empty", "small"])
def test_header_fields_without_end(part: bytes) -> None:
    """Are given up at 64 KiB; until then only they are kept."""
    one = server().opened()
    one.peer(frame(HEADERS, 0, 3))
    before = _size(one.connection)
    one.peer(frame(CONTINUATION, 0, 3, part) * 20_000)
    assert _size(one.connection) - before < 576 << 10  # with the room of a peer that sends much
    with pytest.raises(ConnectionFault, match="ENHANCE_YOUR_CALM"):
        one.peer(frame(CONTINUATION, 0, 3, bytes(1000)) * 66)


def test_header_fields_of_one_frame() -> None:
    """Are not looked at when they are larger than that: a frame of 4 MiB may hold millions of them."""
    for one in (server().opened(), client().opened()):
        with pytest.raises(ConnectionFault, match="ENHANCE_YOUR_CALM"):
            one.peer(frame(HEADERS, END_HEADERS, 3, b"\x20" * ((64 << 10) + 1)))


def test_settings_of_one_frame() -> None:
    """A frame of 4 MiB would hold 700,000, and each may concern all streams."""
    one = server().opened()
    assert one.peer(frame(SETTINGS, 0, 0, bytes(6) * 100)) == []
    with pytest.raises(ConnectionFault, match="ENHANCE_YOUR_CALM"):
        one.peer(frame(SETTINGS, 0, 0, bytes(6) * 101))


def test_a_peer_that_would_keep_a_large_table() -> None:
    """We keep no more than 4 KiB of the header fields that we say, however many they are."""
    one = server().opened(table_size=(1 << 32) - 1)
    sizes = []
    for number in range(1, 2000):
        one.peer(one.headers(_new(number), REQUEST, END_HEADERS | END_STREAM))
        one.connection.end(_new(number), [("grpc-status", "12"), ("grpc-message", f"no method {number}" * 3)])
        one.raw()
        sizes.append(_size(one.connection) if number in (200, 1999) else 0)
    assert max(sizes) - sizes[199] < _ALLOWED


@pytest.mark.parametrize("sizes", [(100, 100), (0, 4096), (100, 50, 3000), (0, 0, (1 << 32) - 1), (4096,), (9999, 20)])
def test_tables_that_change_more_than_once(sizes: tuple[int, ...]) -> None:
    """The peer hears of the smallest size and the last with the next header fields (RFC 7541 section 4.2)."""
    one = server().opened()
    decoder = Decoder()
    for size in sizes:
        one.peer(settings(table_size=size))
    decoder.max_allowed_table_size = sizes[-1]
    one.peer(frame(DATA, END_STREAM, 1))
    one.raw()
    one.connection.end(1, TRAILERS)
    [trailers] = read(one.raw())
    assert decoder.decode(trailers.payload) == TRAILERS
    assert decoder.header_table_size == min(sizes[-1], 4096)
    assert (trailers.payload[0] & 0xE0 == 0x20) is (min(sizes) < 4096)


def test_a_frame_that_is_announced() -> None:
    """Takes memory as it comes, and only one with messages may be large."""
    reader = FrameReader(4 << 20)
    before = sys.getsizeof(reader._buffer)
    head = frame(DATA, 0, 1, bytes(4 << 20))[:9]
    reader.room()[:9] = head
    assert list(reader.feed(9)) == []
    reader.room()
    assert sys.getsizeof(reader._buffer) == before
    reader = FrameReader(4 << 20)
    reader.room()[:9] = frame(SETTINGS, 0, 0, bytes(1 << 20))[:9]
    with pytest.raises(ConnectionFault):
        list(reader.feed(9))
