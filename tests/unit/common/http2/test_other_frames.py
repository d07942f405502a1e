"""Frames that carry no message, and frames that change nothing."""

from __future__ import annotations

import pytest

from services.common.http2.errors import ErrorCode
from services.common.http2.events import GoneAway, Headers, Message, Pong, Reset
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
    RESPONSE,
    RST_STREAM,
    TRAILERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Wire,
    client,
    frame,
    grow,
    long,
    messages,
    server,
)


def test_header_fields_are_put_together() -> None:
    """From HEADERS and any number of CONTINUATION frames, empty ones too (section 6.10)."""
    one = server().started()
    block = one.block(REQUEST)
    come = one.peer(
        frame(HEADERS, END_STREAM, 1, block[:3]),
        frame(CONTINUATION, 0, 1, block[3:4]),
        frame(CONTINUATION, 0, 1),
        frame(CONTINUATION, END_HEADERS, 1, block[4:]),
    )
    assert come == [Headers(1, REQUEST, True)]


@pytest.mark.parametrize("padding", [0, 1, 255])
def test_padding_is_taken_off(padding: int) -> None:
    """Of HEADERS and DATA (sections 6.1 and 6.2)."""
    one = server().started()
    block, rest = one.block(REQUEST), bytes(padding)
    head = frame(HEADERS, END_HEADERS | PADDED, 1, bytes((padding,)) + block + rest)
    data = frame(DATA, PADDED, 1, bytes((padding,)) + messages(b"x") + rest)
    assert one.peer(head, data) == [Headers(1, REQUEST, False), Message(1, b"x")]


def test_a_frame_may_be_all_padding() -> None:
    """It carries nothing (section 6.1)."""
    one = server().opened()
    assert one.peer(frame(DATA, PADDED, 1, b"\x03\0\0\0")) == []


def test_priorities_are_ignored() -> None:
    """As a frame, on any stream, and in HEADERS, after the padding's length (sections 5.3.2, 6.2 and 6.3)."""
    one = server().started()
    assert one.peer(frame(PRIORITY, 0, 9, bytes(5))) == []
    block = one.block(REQUEST)
    head = frame(HEADERS, END_HEADERS | WITH_PRIORITY | PADDED, 1, b"\x02" + bytes(5) + block + bytes(2))
    assert one.peer(head) == [Headers(1, REQUEST, False)]


def test_a_ping_is_answered() -> None:
    """With the same eight octets and ACK (section 6.7)."""
    one = server().started()
    assert one.peer(frame(PING, 0, 0, b"12345678")) == []
    assert one.sent() == [Wire(PING, ACK, 0, b"12345678")]


def test_our_ping_and_its_answer() -> None:
    """Eight octets go out; the answer is a Pong, which is not answered again (section 6.7)."""
    one = client().started()
    one.connection.ping()
    [ping] = one.sent()
    assert (ping.kind, ping.flags, ping.stream, len(ping.payload)) == (PING, 0, 0, 8)
    assert one.peer(frame(PING, ACK, 0, ping.payload)) == [Pong()]
    assert one.raw() == b""


@pytest.mark.parametrize("kind", [0x0A, 0x10, 0xFF])
def test_unknown_frames_are_ignored(kind: int) -> None:
    """On any stream, with any flags and payload (section 5.5)."""
    one = server().opened()
    assert one.peer(*(frame(kind, 0xFF, stream, b"anything") for stream in (0, 1, 2, 99))) == []
    assert one.raw() == b""


def test_the_reserved_bit_is_ignored() -> None:
    """Of a frame's stream and of an increment (sections 4.1 and 6.9)."""
    one = client().opened(initial_window_size=0)
    one.connection.send(1, b"")
    one.peer(frame(WINDOW_UPDATE, 0, 1 << 31 | 1, long(1 << 31 | 5)))
    assert one.sent() == [Wire(DATA, 0, 1, messages(b""))]


def test_unknown_flags_are_ignored() -> None:
    """A flag that a frame's type does not define says nothing (section 4.1)."""
    one = server().opened()
    assert one.peer(frame(DATA, 0xF6, 1, messages(b"x"))) == [Message(1, b"x")]


def test_goaway_ends_the_streams_that_were_not_taken() -> None:
    """Those above its number are reset as REFUSED_STREAM, the others go on (section 6.8)."""
    one = client().opened(1, 3, 5)
    gone = one.peer(frame(GOAWAY, 0, 0, long(1) + long(11) + "genug für heute".encode()))
    assert gone == [
        Reset(3, ErrorCode.REFUSED_STREAM, "genug für heute"),
        Reset(5, ErrorCode.REFUSED_STREAM, "genug für heute"),
        GoneAway(1, 11, "genug für heute"),
    ]
    assert one.peer(frame(DATA, 0, 1, messages(b"x"))) == [Message(1, b"x")]
    one.connection.send(3, b"x")
    assert one.raw() == b""


def test_goaway_of_a_client_ends_no_stream() -> None:
    """Its number counts streams that we opened, of which there are none (section 6.8)."""
    one = server().opened()
    assert one.peer(frame(GOAWAY, 0, 0, long(0) + long(0))) == [GoneAway(0, 0, "")]
    assert one.peer(frame(DATA, 0, 1, messages(b"x"))) == [Message(1, b"x")]


def test_a_server_says_which_streams_it_has_taken() -> None:
    """GOAWAY names the last; one that comes after it is refused, those before go on (section 6.8)."""
    one = server().opened(1, 3)
    one.connection.go_away()
    assert one.sent() == [Wire(GOAWAY, 0, 0, long(3) + long(0))]
    assert one.peer(one.headers(5, REQUEST), frame(DATA, 0, 3, messages(b"x"))) == [Message(3, b"x")]
    assert one.sent() == [Wire(RST_STREAM, 0, 5, long(ErrorCode.REFUSED_STREAM))]


def test_frames_of_closed_streams_are_ignored() -> None:
    """The peer sent them before it knew; their header fields still count for HPACK (sections 4.3 and 5.1)."""
    one = client().opened(1, 3)
    one.connection.reset(1, ErrorCode.CANCEL)
    one.raw()
    late = [("x-late", "yes"), *RESPONSE]
    assert one.peer(
        one.headers(1, late),
        frame(DATA, 0, 1, messages(b"x")),
        grow(1, 1),
        frame(RST_STREAM, 0, 1, long(8)),
        one.headers(1, TRAILERS, END_HEADERS | END_STREAM),
    ) == []  # fmt: skip
    assert one.raw() == b""
    assert one.peer(one.headers(3, late)) == [Headers(3, late, False)]


def test_data_of_closed_streams_counts_for_the_connection() -> None:
    """Its window would run dry otherwise (section 6.9)."""
    one = server().opened()
    one.connection.reset(1, ErrorCode.CANCEL)
    one.raw()
    for _ in range(130):
        one.peer(frame(DATA, 0, 1, messages(bytes(1 << 17))))
    [update] = one.sent()
    assert (update.kind, update.stream) == (WINDOW_UPDATE, 0)


def test_streams_above_the_limit_are_refused() -> None:
    """The 101st, whose frames are then ignored; when one has ended there is room again (section 5.1.2)."""
    one = server().opened(*range(1, 201, 2))
    assert one.peer(one.headers(201, REQUEST), frame(DATA, END_STREAM, 201, messages(b"x"))) == []
    assert one.sent() == [Wire(RST_STREAM, 0, 201, long(ErrorCode.REFUSED_STREAM))]
    one.connection.reset(7, ErrorCode.CANCEL)
    assert one.peer(one.headers(203, REQUEST)) == [Headers(203, REQUEST, False)]
