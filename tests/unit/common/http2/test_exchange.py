"""Requests, responses, messages and trailers (RFC 9113 section 8.1; gRPC's PROTOCOL-HTTP2.md)."""

from __future__ import annotations

import pytest

from services.common.http2.errors import ErrorCode
from services.common.http2.events import Ended, Headers, Message, Reset
from tests.support.http2_transcript import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    REQUEST,
    RESPONSE,
    RST_STREAM,
    TRAILERS,
    Transcript,
    Wire,
    client,
    frame,
    long,
    messages,
    server,
)


def test_a_request_is_told() -> None:
    """Its stream and fields; the stream stays open for messages (section 8.1)."""
    one = server().started()
    assert one.peer(one.headers(1, REQUEST)) == [Headers(1, REQUEST, False)]


def test_a_response_is_told() -> None:
    """Then its trailers, which end the stream (section 8.1)."""
    one = client().opened()
    assert one.peer(one.headers(1, RESPONSE)) == [Headers(1, RESPONSE, False)]
    assert one.peer(one.headers(1, TRAILERS, END_HEADERS | END_STREAM)) == [Headers(1, TRAILERS, True)]


def test_a_client_numbers_its_streams() -> None:
    """With odd numbers, each greater than the last (section 5.1.1)."""
    one = client().started()
    assert [one.connection.request(REQUEST) for _ in range(3)] == [1, 3, 5]


def test_a_message_is_one_frame() -> None:
    """Not compressed, its length, then itself, when it fits (Length-Prefixed-Message)."""
    one = client().opened()
    for body in (b"", b"x", b"y" * 1000):
        one.connection.send(1, body)
        assert one.sent() == [Wire(DATA, 0, 1, b"\0" + long(len(body)) + body)]


@pytest.mark.parametrize("one", [client(), server()], ids=["client", "server"])
def test_frames_cut_messages_anywhere(one: Transcript) -> None:
    """Several messages in one frame, and one in several frames, inside its prefix too (Length-Prefixed-Message)."""
    one.opened()
    assert one.peer(frame(DATA, 0, 1, messages(b"a", b"", b"ccc"))) == [
        Message(1, b"a"),
        Message(1, b""),
        Message(1, b"ccc"),
    ]
    data = messages(b"first", b"second")
    pieces = [frame(DATA, 0, 1, data[at : at + 3]) for at in range(0, len(data), 3)]
    assert one.peer(*pieces) == [Message(1, b"first"), Message(1, b"second")]


def test_streams_are_told_apart() -> None:
    """Messages of two streams may alternate frame by frame."""
    one = server().opened(1, 3)
    a, b = messages(b"a" * 10), messages(b"b" * 10)
    come = one.peer(
        frame(DATA, 0, 1, a[:8]), frame(DATA, 0, 3, b[:4]), frame(DATA, 0, 1, a[8:]), frame(DATA, 0, 3, b[4:])
    )
    assert come == [Message(1, b"a" * 10), Message(3, b"b" * 10)]


def test_a_client_ends_its_side() -> None:
    """END_STREAM on an empty DATA frame; the server still answers."""
    one = client().opened()
    one.connection.end(1, [])
    assert one.sent() == [Wire(DATA, END_STREAM, 1, b"")]
    one.connection.send(1, b"too late")
    assert one.raw() == b""
    assert one.peer(one.headers(1, RESPONSE), frame(DATA, 0, 1, messages(b"x"))) == [
        Headers(1, RESPONSE, False),
        Message(1, b"x"),
    ]


def test_a_server_hears_the_end_and_ends_too() -> None:
    """Trailers carry END_STREAM and end the stream for both."""
    one = server().opened()
    assert one.peer(frame(DATA, END_STREAM, 1, messages(b"last"))) == [Message(1, b"last"), Ended(1)]
    one.connection.end(1, TRAILERS)
    [last] = one.sent()
    assert (last.kind, last.flags, last.stream) == (HEADERS, END_HEADERS | END_STREAM, 1)
    assert one.fields(last) == TRAILERS


def test_a_request_may_end_its_stream() -> None:
    """END_STREAM on HEADERS; answer and trailers follow."""
    one = server().started()
    come = one.peer(one.headers(1, REQUEST, END_HEADERS | END_STREAM))
    assert come == [Headers(1, REQUEST, True)]
    one.connection.respond(1, RESPONSE)
    one.connection.send(1, b"x")
    one.connection.end(1, TRAILERS)
    assert [wire.kind for wire in one.sent()] == [HEADERS, DATA, HEADERS]


def test_a_server_that_ends_first_says_that_it_does_not_listen() -> None:
    """RST_STREAM with NO_ERROR after the trailers (section 8.1)."""
    one = server().opened()
    one.connection.end(1, TRAILERS)
    trailers, reset = one.sent()
    assert trailers.flags == END_HEADERS | END_STREAM
    assert reset == Wire(RST_STREAM, 0, 1, long(ErrorCode.NO_ERROR))


def test_an_answer_may_be_trailers_alone() -> None:
    """Trailers-Only: one HEADERS frame ends a call that was never answered."""
    one = server().started()
    one.peer(one.headers(1, REQUEST, END_HEADERS | END_STREAM))
    one.connection.end(1, [*RESPONSE, *TRAILERS])
    [only] = one.sent()
    assert one.fields(only) == [*RESPONSE, *TRAILERS]


def test_our_reset_ends_a_stream() -> None:
    """RST_STREAM with the code; once (section 6.4)."""
    one = client().opened()
    one.connection.reset(1, ErrorCode.CANCEL)
    one.connection.reset(1, ErrorCode.CANCEL)
    one.connection.send(1, b"x")
    one.connection.end(1, [])
    assert one.sent() == [Wire(RST_STREAM, 0, 1, long(ErrorCode.CANCEL))]


def test_the_peers_reset_ends_a_stream() -> None:
    """It is told with its code, and nothing more goes out on the stream (section 5.4.2)."""
    one = server().opened()
    assert one.peer(frame(RST_STREAM, 0, 1, long(8))) == [Reset(1, 8, "")]
    one.connection.send(1, b"x")
    one.connection.end(1, TRAILERS)
    one.connection.respond(1, RESPONSE)
    assert one.raw() == b""


def test_no_trailers_end_a_stream_too() -> None:
    """Header fields of which there are none are still a frame (section 6.2)."""
    one = server().started()
    one.peer(one.headers(1, REQUEST, END_HEADERS | END_STREAM))
    one.raw()
    one.connection.end(1, [])
    assert one.sent() == [Wire(HEADERS, END_HEADERS | END_STREAM, 1, b"")]


def test_long_header_fields_are_continued() -> None:
    """A block larger than a frame goes out in CONTINUATION frames, END_HEADERS on the last (section 6.10)."""
    one = server().started()
    one.peer(one.headers(1, REQUEST))
    one.connection.respond(1, [*RESPONSE, ("x", "\x7f" * 40_000)])
    first, *between, last = one.sent()
    assert [first.kind, *(wire.kind for wire in between), last.kind] == [HEADERS] + [CONTINUATION] * (len(between) + 1)
    assert [first.flags, *(wire.flags for wire in between), last.flags] == [0] * (len(between) + 1) + [END_HEADERS]
    assert all(len(wire.payload) <= 16_384 for wire in (first, *between, last))
    one.decoder.max_header_list_size = 1 << 20
    whole = Wire(HEADERS, 0, 1, b"".join(wire.payload for wire in (first, *between, last)))
    assert one.fields(whole)[-1] == ("x", "\x7f" * 40_000)
