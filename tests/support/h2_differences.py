"""Where ours means to make something else of a frame than the `h2` library does, and why; and both side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hpack import Encoder

from services.common.http2.errors import ErrorCode
from tests.support.h2_roles import GOES_ON, Ours, Outcome, Theirs
from tests.support.http2_transcript import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    REQUEST,
    RESPONSE,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Fields,
    Wire,
    frame,
    long,
    messages,
    settings,
)

_P, _F = ErrorCode.PROTOCOL_ERROR, ErrorCode.FLOW_CONTROL_ERROR
_S, _C = ErrorCode.FRAME_SIZE_ERROR, ErrorCode.STREAM_CLOSED
_ALTSVC, _CONNECT_PROTOCOL = 0xA, 0x8


def _connection(code: ErrorCode) -> Outcome:
    return Outcome("connection", code)


def _stream(code: ErrorCode) -> Outcome:
    return Outcome("stream", code)


class Pair:
    """Ours and theirs, each with streams 1 and 3 open: requested, and answered."""

    def __init__(self, *, is_client: bool) -> None:
        self.is_client = is_client
        self.encoder = Encoder()
        self.ours, self.theirs = Ours(is_client=is_client), Theirs(is_client=is_client)
        self.both((b"" if is_client else PREFACE) + settings() + frame(SETTINGS, ACK))
        if is_client:
            for role in (self.ours, self.theirs):
                role.request()
                role.request()
        for number in (1, 3):
            self.both(self.headers(number, RESPONSE if is_client else REQUEST))

    def headers(self, number: int, fields: Fields, flags: int = END_HEADERS) -> bytes:
        return frame(HEADERS, flags, number, self.encoder.encode(fields))

    def both(self, data: bytes) -> tuple[Outcome, Outcome]:
        return self.ours.hear(data), self.theirs.hear(data)

    def say(self, what: str, number: int) -> None:
        """`end` or `reset` a stream from this side."""
        for role in (self.ours, self.theirs):
            getattr(role, what)(number)
            role.silent()

    def is_over(self, number: int) -> bool:
        """Whether nothing is known any more of a stream that may have been."""
        ours = self.ours.connection
        return number % 2 == 1 and number <= ours._last_stream and number not in ours._streams

    def is_idle(self, number: int) -> bool:
        return number % 2 == 0 or number > self.ours.connection._last_stream


class Difference(NamedTuple):
    """Between what ours makes of a frame and what theirs does; `shown` by the last frame of these."""

    why: str
    ours: Outcome
    theirs: tuple[Outcome, ...]
    applies: Callable[[Pair, Wire], bool]  # in the state before it
    shown: Callable[[Pair], bytes]
    is_client: bool = False  # the end that shows it


def _is(*kinds: int) -> Callable[[Pair, Wire], bool]:
    return lambda pair, wire: wire.kind in kinds


def _has_reserved_bit(_pair: Pair, wire: Wire) -> bool:
    return wire.kind == WINDOW_UPDATE and wire.payload[0] >= 0x80


_FIELDS = (HEADERS, CONTINUATION)

DIFFERENCES = [
    Difference(
        "RFC 9113, 6.4: RST_STREAM of an idle stream is an error of the connection; h2 passes it over",
        _connection(_P),
        (GOES_ON,),
        lambda pair, wire: wire.kind == RST_STREAM and pair.is_idle(wire.stream),
        lambda pair: frame(RST_STREAM, 0, 9, long(8)),
    ),
    Difference(
        "5.1.1: a server opens no stream but with PUSH_PROMISE; h2 takes its even ones for good",
        _connection(_P),
        (GOES_ON,),
        lambda pair, wire: wire.kind in _FIELDS and pair.is_client and wire.stream % 2 == 0,
        lambda pair: pair.headers(2, RESPONSE),
        is_client=True,
    ),
    Difference(
        "5.1: what comes of a stream that is over is passed over. We keep nothing of such streams, and one that was "
        "reset may still be written to; h2 remembers which were reset, and how others ended",
        GOES_ON,
        (_stream(_C), _connection(_C), _connection(_P), _connection(_S)),
        lambda pair, wire: wire.kind in (*_FIELDS, DATA) and pair.is_over(wire.stream),
        lambda pair: frame(RST_STREAM, 0, 1, long(8)) + frame(DATA, 0, 1, messages(b"x")),
    ),
    Difference(
        "8.1: a request's trailers that do not end it are an error of the stream",
        _stream(_P),
        (_connection(_P),),
        lambda pair, wire: wire.kind in _FIELDS and not pair.is_client,
        lambda pair: pair.headers(1, TRAILERS),
    ),
    Difference(
        "An answer's header fields may come more than once (1xx); ours leaves it to gRPC how often",
        GOES_ON,
        (_connection(_P),),
        lambda pair, wire: wire.kind in _FIELDS and pair.is_client,
        lambda pair: pair.headers(1, TRAILERS),
        is_client=True,
    ),
    Difference(
        "6.3: a PRIORITY of another length is an error of its stream; of one that is not open nothing can end",
        _stream(_S),
        (_connection(_S),),
        _is(PRIORITY),
        lambda pair: frame(PRIORITY, 0, 1, bytes(4)),
    ),
    Difference(
        "The same, of a stream that is not open; and 5.3.1: that a stream cannot depend on itself went with priorities",
        GOES_ON,
        (_connection(_S), _connection(_P)),
        lambda pair, wire: wire.kind == PRIORITY or (wire.kind == HEADERS and bool(wire.flags & WITH_PRIORITY)),
        lambda pair: frame(PRIORITY, 0, 3, long(3) + b"\0"),
    ),
    Difference(
        "4.3: what HPACK cannot read is a COMPRESSION_ERROR; h2 says PROTOCOL_ERROR",
        _connection(ErrorCode.COMPRESSION_ERROR),
        (_connection(_P),),
        _is(*_FIELDS),
        lambda pair: frame(HEADERS, END_HEADERS, 5, b"\xff\xff\xff"),
    ),
    Difference(
        "Two faults in one frame: h2 looks at its stream first",
        _connection(_S),
        (_connection(_P),),
        _is(RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS),
        lambda pair: frame(RST_STREAM, 0, 0, bytes(3)),
    ),
    Difference(
        "Two faults once more: h2 first sees what is cut off, ours a push, a stream that is idle, or padding too long",
        _connection(_P),
        (_connection(_S),),
        _is(PUSH_PROMISE, HEADERS, DATA),
        lambda pair: frame(PUSH_PROMISE, 0, 1, bytes(2)),
    ),
    Difference(
        "A push that is to be continued: ours does not wait for the rest",
        _connection(_P),
        (GOES_ON,),
        _is(PUSH_PROMISE),
        lambda pair: frame(PUSH_PROMISE, 0, 1, long(2)),
    ),
    Difference(
        "Settings and frames of other documents (RFC 8441, RFC 7838) are unknown to ours, and passed over",
        GOES_ON,
        (_connection(_P), _connection(_S)),
        _is(SETTINGS, _ALTSVC),
        lambda pair: frame(SETTINGS, 0, 0, _CONNECT_PROTOCOL.to_bytes(2, "big") + long(2)),
    ),
    Difference(
        "6.9: the first bit of an increment is not looked at; h2 takes it for a part of the number",
        GOES_ON,
        (_connection(_P),),
        _has_reserved_bit,
        lambda pair: frame(WINDOW_UPDATE, 0, 1, long(1 << 31 | 5)),
    ),
    Difference(
        "The same, where the number that is left is too much for the stream's window",
        _stream(_F),
        (_connection(_P),),
        _has_reserved_bit,
        lambda pair: frame(WINDOW_UPDATE, 0, 1, b"\xff" * 4),
    ),
    Difference(
        "The same, where it is too much for the connection's window",
        _connection(_F),
        (_connection(_P),),
        _has_reserved_bit,
        lambda pair: frame(WINDOW_UPDATE, 0, 0, b"\xff" * 4),
    ),
    Difference(
        "6.9: a stream's window that grows by nothing is an error of that stream",
        _stream(_P),
        (_connection(_P),),
        _is(WINDOW_UPDATE),
        lambda pair: frame(WINDOW_UPDATE, 0, 1, long(0)),
    ),
    Difference(
        "5.1: the same of a stream that is over: nobody looks",
        GOES_ON,
        (_connection(_P),),
        lambda pair, wire: wire.kind == WINDOW_UPDATE and pair.is_over(wire.stream),
        lambda pair: frame(RST_STREAM, 0, 1, long(8)) + frame(WINDOW_UPDATE, 0, 1, long(0)),
    ),
    Difference(
        "A stream that ends in the middle of a message: a fault of gRPC, of which h2 knows nothing",
        _stream(_P),
        (GOES_ON,),
        _is(DATA),
        lambda pair: frame(DATA, END_STREAM, 1, messages(b"xyz")[:6]),
    ),
    Difference(
        "The same of a message that is compressed, or too large",
        _stream(ErrorCode.CANCEL),
        (GOES_ON,),
        _is(DATA),
        lambda pair: frame(DATA, 0, 1, b"\x01" + long(1) + b"x"),
    ),
    Difference(
        "A continuation of nothing: h2 asks what became of its stream",
        _connection(_P),
        (_connection(_C), _stream(_C)),
        _is(CONTINUATION),
        lambda pair: frame(RST_STREAM, 0, 1, long(8)) + pair.headers(5, REQUEST) + frame(CONTINUATION, END_HEADERS, 1),
    ),
    Difference(
        "Header fields in more than 64 frames: ours counts octets, and empty frames cost it nothing",
        GOES_ON,
        (_connection(_P),),
        _is(CONTINUATION),
        lambda pair: frame(HEADERS, 0, 5) + frame(CONTINUATION, 0, 5) * 64,
    ),
    Difference(
        "Header fields of stream 0, or with nothing in a frame: ours sees it when they are whole",
        GOES_ON,
        (_connection(_P),),
        lambda pair, wire: wire.kind == HEADERS and not wire.flags & END_HEADERS,
        lambda pair: frame(HEADERS, 0, 0, b"\x82"),
    ),
    Difference(
        "10.5.1: 64 KiB of header fields are too much; h2 would unpack megabytes",
        _connection(ErrorCode.ENHANCE_YOUR_CALM),
        (_connection(_P), GOES_ON),
        _is(*_FIELDS),
        lambda pair: frame(HEADERS, END_HEADERS, 5, b"\x20" * 70_000),
    ),
    Difference(
        "5.1.2: one stream too many is refused; h2 ends the connection",
        _stream(ErrorCode.REFUSED_STREAM),
        (_connection(_P),),
        _is(*_FIELDS),
        lambda pair: b"".join(pair.headers(number, REQUEST) for number in range(5, 203, 2)),
    ),
]
