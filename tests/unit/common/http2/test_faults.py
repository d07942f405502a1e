"""What bad input gets: an error code, which ends the connection or one stream (RFC 9113 sections 5.4 and 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Message, Reset
from tests.support.http2_transcript import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    LARGEST_MESSAGE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    REQUEST,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Transcript,
    Wire,
    client,
    frame,
    grow,
    long,
    messages,
    server,
    settings,
)

Bytes = Callable[[Transcript], bytes]
_P, _F, _S = ErrorCode.PROTOCOL_ERROR, ErrorCode.FLOW_CONTROL_ERROR, ErrorCode.FRAME_SIZE_ERROR
_MOST = (1 << 31) - 1
_TLS_HELLO = bytes.fromhex("16030100c8010000c40303")


def _ends(one: Transcript, data: bytes) -> tuple[ErrorCode, int]:
    """The connection's fault, which is what its last frame says: the code, and the last stream."""
    one.raw()
    with pytest.raises(ConnectionFault) as failure:
        one.peer(data)
    *_, last = one.sent()
    assert (last.kind, last.flags, last.stream) == (GOAWAY, 0, 0)
    assert last.payload[4:] == long(failure.value.code) + failure.value.text.encode()
    return failure.value.code, int.from_bytes(last.payload[:4], "big")


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", _TLS_HELLO, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\n", b"\0"]
)
def test_a_wrong_preface(data: bytes) -> None:
    """A peer that does not begin as HTTP/2 begins gets an error at the first octet that differs (section 3.4)."""
    assert _ends(server(), data) == (_P, 0)


@pytest.mark.parametrize(
    "first",
    [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, ACK), grow(0, 1), frame(0xAB), frame(DATA, 0, 1)],
    ids=["ping", "acknowledgement", "window", "unknown", "data"],
)
@pytest.mark.parametrize("one", [client, server])
def test_the_first_frame_must_be_settings(one: Callable[[], Transcript], first: bytes) -> None:
    """Of both ends (section 3.4)."""
    assert _ends(one(), (PREFACE if one is server else b"") + first)[0] == _P


def test_an_http_1_server() -> None:
    """What it answers to our preface cannot be a frame (section 4.2)."""
    assert _ends(client(), b"HTTP/1.1 400 Bad Request\r\n\r\n") == (_S, 0)


_OF_THE_CONNECTION: dict[str, tuple[ErrorCode, Bytes]] = {
    "frame too large, 4.2": (_S, lambda one: ((1 << 22) + 1).to_bytes(3, "big") + bytes(6)),
    "SETTINGS cut off, 6.5": (_S, lambda one: frame(SETTINGS, payload=bytes(7))),
    "SETTINGS acknowledged with values, 6.5": (_S, lambda one: frame(SETTINGS, ACK, 0, bytes(6))),
    "SETTINGS of a stream, 6.5": (_P, lambda one: frame(SETTINGS, 0, 1)),
    "ENABLE_PUSH out of range, 6.5.2": (_P, lambda one: settings(enable_push=2)),
    "INITIAL_WINDOW_SIZE out of range, 6.5.2": (_F, lambda one: settings(initial_window_size=1 << 31)),
    "MAX_FRAME_SIZE too small, 6.5.2": (_P, lambda one: settings(max_frame_size=16_383)),
    "MAX_FRAME_SIZE too large, 6.5.2": (_P, lambda one: settings(max_frame_size=1 << 24)),
    "PING too short, 6.7": (_S, lambda one: frame(PING, 0, 0, bytes(7))),
    "PING too long, 6.7": (_S, lambda one: frame(PING, ACK, 0, bytes(9))),
    "PING of a stream, 6.7": (_P, lambda one: frame(PING, 0, 1, bytes(8))),
    "PRIORITY of no stream, 6.3": (_P, lambda one: frame(PRIORITY, 0, 0, bytes(5))),
    "RST_STREAM cut off, 6.4": (_S, lambda one: frame(RST_STREAM, 0, 1, bytes(3))),
    "RST_STREAM of no stream, 6.4": (_P, lambda one: frame(RST_STREAM, 0, 0, bytes(4))),
    "RST_STREAM of an idle stream, 6.4": (_P, lambda one: frame(RST_STREAM, 0, 9, bytes(4))),
    "WINDOW_UPDATE cut off, 6.9": (_S, lambda one: frame(WINDOW_UPDATE, 0, 0, bytes(3))),
    "WINDOW_UPDATE of a stream cut off, 6.9": (_S, lambda one: frame(WINDOW_UPDATE, 0, 1, bytes(5))),
    "WINDOW_UPDATE of an idle stream, 5.1": (_P, lambda one: grow(9, 1)),
    "the connection's window grows by nothing, 6.9": (_P, lambda one: grow(0, 0)),
    "the connection's window overflows, 6.9.1": (_F, lambda one: grow(0, _MOST)),
    "GOAWAY cut off, 6.8": (_S, lambda one: frame(GOAWAY, 0, 0, bytes(7))),
    "GOAWAY of a stream, 6.8": (_P, lambda one: frame(GOAWAY, 0, 1, bytes(8))),
    "DATA of no stream, 6.1": (_P, lambda one: frame(DATA, 0, 0, messages(b"x"))),
    "DATA of an idle stream, 5.1": (_P, lambda one: frame(DATA, 0, 9, messages(b"x"))),
    "DATA with too much padding, 6.1": (_P, lambda one: frame(DATA, PADDED, 1, b"\x04" + bytes(3))),
    "DATA without its padding, 4.2": (_S, lambda one: frame(DATA, PADDED, 1)),
    "HEADERS with too much padding, 6.2": (_P, lambda one: frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff\x82")),
    "HEADERS without their priority, 6.2": (_S, lambda one: frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, bytes(4))),
    "HEADERS of no stream, 6.2": (_P, lambda one: one.headers(0, REQUEST)),
    "HEADERS of an even stream, 5.1.1": (_P, lambda one: one.headers(2, REQUEST)),
    "broken HPACK, 4.3": (ErrorCode.COMPRESSION_ERROR, lambda one: frame(HEADERS, END_HEADERS, 3, b"\xff\xff\xff")),
    "text that is none, 4.3": (
        ErrorCode.COMPRESSION_ERROR,
        lambda one: frame(HEADERS, END_HEADERS, 3, b"\x00\x01\xff\x01\xff"),
    ),
    "header fields too large when unpacked, 4.3": (
        ErrorCode.COMPRESSION_ERROR,
        lambda one: frame(HEADERS, END_HEADERS, 3, b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000 + b"\xbe" * 9000),
    ),
    "CONTINUATION of nothing, 6.10": (_P, lambda one: frame(CONTINUATION, END_HEADERS, 1)),
    "CONTINUATION of another stream, 6.10": (_P, lambda one: frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 3)),
    "DATA inside header fields, 6.2": (_P, lambda one: frame(HEADERS, 0, 1) + frame(DATA, 0, 1)),
    "an unknown frame inside header fields, 6.2": (_P, lambda one: frame(HEADERS, 0, 1) + frame(0xAB)),
    "endless header fields, 10.5.1": (
        ErrorCode.ENHANCE_YOUR_CALM,
        lambda one: frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, bytes(1 << 13)) * 9,
    ),
    "PUSH_PROMISE, 8.4": (_P, lambda one: frame(PUSH_PROMISE, END_HEADERS, 1, long(2))),
}


@pytest.mark.parametrize(("code", "data"), _OF_THE_CONNECTION.values(), ids=_OF_THE_CONNECTION)
@pytest.mark.parametrize("one", [client, server])
def test_faults_that_end_the_connection(one: Callable[[], Transcript], code: ErrorCode, data: Bytes) -> None:
    """The peer is told why in a GOAWAY with the code of the section, and by a server which streams were taken."""
    it = one().opened()
    got, last = _ends(it, data(it))
    assert got == code
    assert last in ((0,) if one is client else (1, 3))


def test_a_server_cannot_open_streams() -> None:
    """HEADERS of a stream that the client has not opened, odd or even (sections 5.1 and 8.4)."""
    for number in (2, 3):
        one = client().opened()
        assert _ends(one, one.headers(number, REQUEST)) == (_P, 0)


def test_a_server_cannot_ask_for_pushes() -> None:
    """ENABLE_PUSH is not its to set, a client's is (section 6.5.2)."""
    assert _ends(client().opened(), settings(enable_push=1)) == (_P, 0)
    assert client().opened().peer(settings(enable_push=0)) == server().opened().peer(settings(enable_push=1)) == []


def test_trailers_that_do_not_end_a_request() -> None:
    """End its stream, as broken (section 8.1)."""
    one = server().opened()
    [reset] = one.peer(one.headers(1, TRAILERS))
    assert (reset.stream, reset.code) == (1, _P)
    assert one.sent() == [Wire(RST_STREAM, 0, 1, long(_P))]


def test_a_new_initial_window_can_overflow_a_window() -> None:
    """FLOW_CONTROL_ERROR (section 6.9.2)."""
    one = client().opened()
    one.peer(grow(1, _MOST - 65_535))
    assert _ends(one, settings(initial_window_size=65_536)) == (_F, 0)


def test_more_data_than_the_connections_window() -> None:
    """Ends the connection (section 6.9.1)."""
    one = server().opened(1, 3)
    one.connection._receiving.left = 9  # a peer that is told of more at half can hardly exceed it
    assert _ends(one, frame(DATA, 0, 1, messages(b"12345")))[0] == _F


_OF_A_STREAM: dict[str, tuple[ErrorCode, Bytes]] = {
    "its window grows by nothing, 6.9": (_P, lambda one: grow(1, 0)),
    "its window overflows, 6.9.1": (_F, lambda one: grow(1, _MOST)),
    "PRIORITY cut off, 6.3": (_S, lambda one: frame(PRIORITY, 0, 1, bytes(4))),
    "data after its end, 5.1": (
        ErrorCode.STREAM_CLOSED,
        lambda one: frame(DATA, END_STREAM, 1) + frame(DATA, 0, 1, messages(b"x")),
    ),
    "header fields after its end, 5.1": (
        ErrorCode.STREAM_CLOSED,
        lambda one: frame(DATA, END_STREAM, 1) + one.headers(1, TRAILERS),
    ),
    "a cut-off prefix at its end": (_P, lambda one: frame(DATA, END_STREAM, 1, bytes(4))),
    "a cut-off message at its end": (_P, lambda one: frame(DATA, END_STREAM, 1, messages(b"xyz")[:-1])),
    "a compressed message": (ErrorCode.CANCEL, lambda one: frame(DATA, 0, 1, b"\x01" + long(1) + b"x")),
    "a message too large": (
        ErrorCode.ENHANCE_YOUR_CALM,
        lambda one: frame(DATA, 0, 1, b"\x00" + long(LARGEST_MESSAGE + 1)),
    ),
    "a message too large, prefix in two frames": (
        ErrorCode.ENHANCE_YOUR_CALM,
        lambda one: frame(DATA, 0, 1, b"\x00\xff") + frame(DATA, 0, 1, bytes(3)),
    ),
}


@pytest.mark.parametrize(("code", "data"), _OF_A_STREAM.values(), ids=_OF_A_STREAM)
@pytest.mark.parametrize("one", [client, server])
def test_faults_that_end_a_stream(one: Callable[[], Transcript], code: ErrorCode, data: Bytes) -> None:
    """RST_STREAM with the code, and a Reset that says why; what else comes of the stream is ignored, others go on."""
    it = one().opened(1, 3)
    *_, reset = it.peer(data(it))
    assert isinstance(reset, Reset)
    assert (reset.stream, reset.code) == (1, code)
    assert reset.text
    assert it.sent() == [Wire(RST_STREAM, 0, 1, long(code))]
    again = frame(DATA, 0, 1, messages(b"a"))
    assert it.peer(again, frame(DATA, 0, 3, messages(b"b"))) == [Message(3, b"b")]
    assert it.raw() == b""


_ASKING = {
    "PING": lambda one, _: frame(PING, 0, 0, bytes(8)),
    "SETTINGS": lambda one, _: settings(),
    "requests": lambda one, number: one.headers(2 * number + 1, REQUEST, END_HEADERS | END_STREAM),
    "requests that fail": lambda one, number: one.headers(2 * number + 1, REQUEST) + grow(2 * number + 1, 0),
}


@pytest.mark.parametrize("ask", _ASKING.values(), ids=_ASKING)
def test_a_peer_that_asks_and_does_not_read(ask: Callable[[Transcript, int], bytes]) -> None:
    """Has to calm down: what it is owed is bounded. One that reads may ask for ever (section 10.5)."""
    one = server().started()
    for number in range(1, 3000):
        one.peer(ask(one, number))
        one.raw()
    flood = b"".join(ask(one, number) for number in range(3000, 4100))
    with pytest.raises(ConnectionFault) as failure:
        one.peer(flood)
    assert failure.value.code is ErrorCode.ENHANCE_YOUR_CALM
    *answers, last = one.sent()
    assert (last.kind, len(answers) <= 1000) == (GOAWAY, True)


def test_more_data_than_a_streams_window() -> None:
    """Ends that stream and no other (section 6.9.1)."""
    one = server().opened(1, 3)
    one.connection._streams[1].receiving.left = 9  # a peer that is told of more at half can hardly exceed it
    [reset] = one.peer(frame(DATA, 0, 1, messages(b"12345")))
    assert isinstance(reset, Reset)
    assert (reset.stream, reset.code) == (1, _F)
    assert one.peer(frame(DATA, 0, 3, messages(b"x"))) == [Message(3, b"x")]


def test_the_largest_message_is_taken() -> None:
    """One octet less than too much."""
    one = server().opened()
    body = b"x" * LARGEST_MESSAGE
    data = messages(body)
    pieces = [frame(DATA, 0, 1, data[at : at + (1 << 18)]) for at in range(0, len(data), 1 << 18)]
    assert one.peer(*pieces) == [Message(1, body)]
