"""A transcript of one HTTP/2 connection: what the peer sends, what our end says, what comes out.

The peer's frames are put together, and ours taken apart, here and from RFC 9113 alone, not by the code under test.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from hpack import Decoder, Encoder

from services.common.http2.connection import Http2Connection
from services.common.http2.events import Event, Fields

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 0x1, 0x2, 0x4, 0x5

LARGEST_MESSAGE = 1 << 20
REQUEST: Fields = [(":method", "POST"), (":scheme", "http"), (":path", "/a.B/C"), (":authority", "x")]
RESPONSE: Fields = [(":status", "200"), ("content-type", "application/grpc")]
TRAILERS: Fields = [("grpc-status", "0")]


class Wire(NamedTuple):
    """A frame."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Section 4.1."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + long(stream) + payload


def long(value: int) -> bytes:
    """32 bits."""
    return value.to_bytes(4, "big")


def settings(**values: int) -> bytes:
    """SETTINGS, by the names above in small letters."""
    numbers = {
        "table_size": 1,
        "enable_push": 2,
        "max_concurrent_streams": 3,
        "initial_window_size": 4,
        "max_frame_size": 5,
        "unknown": 0xABCD,
    }
    pairs = (numbers[name].to_bytes(2, "big") + long(value) for name, value in values.items())
    return frame(SETTINGS, payload=b"".join(pairs))


def grow(stream: int, increment: int) -> bytes:
    """WINDOW_UPDATE."""
    return frame(WINDOW_UPDATE, 0, stream, long(increment))


def messages(*bodies: bytes) -> bytes:
    """Length-Prefixed-Messages."""
    return b"".join(b"\0" + long(len(body)) + body for body in bodies)


def read(data: bytes) -> list[Wire]:
    """All frames; nothing may be left over."""
    found = []
    while data:
        size = int.from_bytes(data[:3], "big")
        found.append(Wire(data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + size]))
        assert len(found[-1].payload) == size
        data = data[9 + size :]
    return found


def receive(connection: Http2Connection, data: bytes) -> list[Event]:
    """What comes of it that a connection's socket gives this."""
    events: list[Event] = []
    while data:
        room = connection.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        events += connection.received(count)
        data = data[count:]
    return events


class Transcript:
    """Drives a connection; `sent` and `raw` empty what it has to say."""

    def __init__(self, *, is_client: bool) -> None:
        self.connection = Http2Connection(is_client=is_client, largest_message=LARGEST_MESSAGE)
        self.encoder, self.decoder = Encoder(), Decoder()
        self._is_client = is_client

    def raw(self) -> bytes:
        """The bytes that our end wants written."""
        return b"".join(self.connection.data_to_send())

    def sent(self) -> list[Wire]:
        """The same as frames."""
        return read(self.raw())

    def peer(self, *pieces: bytes) -> list[Event]:
        """What comes of it that the peer sends this."""
        return receive(self.connection, b"".join(pieces))

    def block(self, fields: Fields) -> bytes:
        """Header fields of the peer."""
        return bytes(self.encoder.encode(fields))

    def headers(self, stream: int, fields: Fields, flags: int = END_HEADERS) -> bytes:
        """The same as a frame."""
        return frame(HEADERS, flags, stream, self.block(fields))

    def fields(self, wire: Wire) -> Fields:
        """Header fields of ours."""
        return [(str(name), str(value)) for name, value in self.decoder.decode(wire.payload)]

    def started(self, **values: int) -> Self:
        """After the prefaces, the peer's with these settings."""
        self.peer(b"" if self._is_client else PREFACE, settings(**values))
        self.raw()
        return self

    def opened(self, *streams: int, **values: int) -> Self:
        """With streams that are open, 1 by default, requested and, if we serve, answered."""
        self.started(**values)
        for number in streams or (1,):
            if self._is_client:
                assert self.connection.request(REQUEST) == number
            else:
                self.peer(self.headers(number, REQUEST))
                self.connection.respond(number, RESPONSE)
        for wire in self.sent():
            self.fields(wire)
        return self


def server() -> Transcript:
    """Of the end that answers."""
    return Transcript(is_client=False)


def client() -> Transcript:
    """Of the end that asks."""
    return Transcript(is_client=True)
