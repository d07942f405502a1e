"""Windows: what we let the peer send, and what we hold back until it lets us (RFC 9113 sections 5.2 and 6.9)."""

from __future__ import annotations

import pytest

from services.common.http2.errors import ErrorCode
from tests.support.http2_transcript import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    REQUEST,
    RESPONSE,
    RST_STREAM,
    SETTINGS,
    TRAILERS,
    WINDOW_UPDATE,
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

_FIRST_WINDOW = 65_535
_FRAME = 1 << 18  # of what is sent here, a small part of a window


def _data(wires: list[Wire]) -> bytes:
    assert {wire.kind for wire in wires} <= {DATA}
    return b"".join(wire.payload for wire in wires)


def _takes(one: Transcript, stream: int, size: int) -> list[Wire]:
    """The peer sends so much, in the largest frames."""
    updates = []
    while size:
        part = min(size, _FRAME)
        one.peer(frame(DATA, 0, stream, messages(bytes(part - 5))))
        updates += one.sent()
        size -= part
    return updates


def test_a_streams_window_is_opened_again_when_half_is_used_up() -> None:
    """WINDOW_UPDATE with all that was taken, and none before."""
    one = server().opened()
    assert _takes(one, 1, 4 << 20) == []
    assert _takes(one, 1, 5) == [Wire(WINDOW_UPDATE, 0, 1, long((4 << 20) + 5))]
    assert _takes(one, 1, 4 << 20) == []


def test_the_connections_window_is_opened_again_when_half_is_used_up() -> None:
    """The streams' data together, one WINDOW_UPDATE of stream 0."""
    one = server().opened(1, 3, 5, 7)
    for number in (1, 3, 5, 7):
        assert _takes(one, number, 4 << 20) == []
    assert _takes(one, 1, 5) == [
        Wire(WINDOW_UPDATE, 0, 0, long((16 << 20) + 5)),
        Wire(WINDOW_UPDATE, 0, 1, long((4 << 20) + 5)),
    ]


def test_padding_counts() -> None:
    """All of a frame's payload is taken from the windows (section 6.9.1)."""
    one = server().opened()
    padded = frame(DATA, 0x8, 1, b"\xff" + bytes(255))
    for _ in range((4 << 20) // 256):
        one.peer(padded)
    assert one.raw() == b""
    one.peer(padded)
    assert one.sent() == [Wire(WINDOW_UPDATE, 0, 1, long((4 << 20) + 256))]


@pytest.mark.parametrize("size", [16_384, 50_000])
def test_a_message_larger_than_a_frame_is_cut(size: int) -> None:
    """No frame exceeds the peer's SETTINGS_MAX_FRAME_SIZE (section 4.2)."""
    one = client().opened()
    body = bytes(range(250)) * (size // 250)
    one.connection.send(1, body)
    wires = one.sent()
    assert max(len(wire.payload) for wire in wires) <= 16_384
    assert _data(wires) == messages(body)
    assert one.connection.unsent == 0


def test_a_peer_that_takes_large_frames_gets_them() -> None:
    """A message is one frame when SETTINGS_MAX_FRAME_SIZE allows it."""
    one = client().opened(max_frame_size=60_000)
    one.connection.send(1, b"x" * 50_000)
    assert one.sent() == [Wire(DATA, 0, 1, messages(b"x" * 50_000))]


def test_what_does_not_fit_waits_for_the_streams_window() -> None:
    """Then goes on, in order, behind what waited before it."""
    one = client().opened(initial_window_size=10)
    bodies = [b"a" * 20, b"", b"b" * 3]
    for body in bodies:
        one.connection.send(1, body)
    said = _data(one.sent())
    assert len(said) == 10
    assert one.connection.unsent == len(messages(*bodies)) - 10
    for increment in (1, 5, 12):
        one.peer(grow(1, increment))
        said += _data(one.sent())
    assert said == messages(*bodies)[:28]
    one.peer(grow(1, 1000))
    assert said + _data(one.sent()) == messages(*bodies)
    assert one.connection.unsent == 0


def test_what_does_not_fit_waits_for_the_connections_window() -> None:
    """All streams that wait go on when it grows."""
    one = server().opened(1, 3, initial_window_size=1 << 20)
    one.connection.send(1, b"a" * 60_000)
    one.connection.send(3, b"b" * 60_000)
    one.connection.send(1, b"c" * 60_000)
    assert len(_data(one.sent())) == _FIRST_WINDOW
    assert one.connection.unsent == 3 * 60_005 - _FIRST_WINDOW
    one.peer(grow(0, 1 << 20))
    wires = one.sent()
    assert _data([wire for wire in wires if wire.stream == 1]) == messages(b"c" * 60_000)
    assert _data([wire for wire in wires if wire.stream == 3]).endswith(b"b" * 50_000)
    assert one.connection.unsent == 0


def test_a_stream_that_waits_delays_no_other() -> None:
    """A full window of one stream leaves the others theirs."""
    one = server().opened(1, 3, initial_window_size=100)
    one.connection.send(1, b"a" * 200)
    one.raw()
    one.connection.send(3, b"b")
    assert one.sent() == [Wire(DATA, 0, 3, messages(b"b"))]


def test_a_larger_initial_window_lets_streams_go_on() -> None:
    """SETTINGS change the windows of all streams by the difference (section 6.9.2)."""
    one = client().opened(1, 3, initial_window_size=0)
    one.connection.send(1, b"a")
    one.connection.send(3, b"b")
    assert one.raw() == b""
    one.peer(settings(initial_window_size=6))
    acknowledged, *data = one.sent()
    assert acknowledged == Wire(SETTINGS, ACK, 0, b"")
    assert _data([wire for wire in data if wire.stream == 1]) == messages(b"a")
    assert _data([wire for wire in data if wire.stream == 3]) == messages(b"b")


def test_windows_can_become_negative() -> None:
    """A smaller initial window is owed: nothing goes out until the window is positive again (section 6.9.2)."""
    one = client().opened(initial_window_size=100)
    one.connection.send(1, b"x" * 95)
    one.raw()
    one.peer(settings(initial_window_size=20))
    one.raw()
    one.connection.send(1, b"y" * 5)
    one.peer(grow(1, 80))
    assert one.raw() == b""
    one.peer(grow(1, 3))
    assert one.sent() == [Wire(DATA, 0, 1, messages(b"y" * 5)[:3])]
    one.peer(settings(initial_window_size=27))
    assert _data(one.sent()[1:]) == messages(b"y" * 5)[3:]


def test_later_streams_begin_with_the_new_initial_window() -> None:
    """For any window at the beginning of the connection (section 6.9.2)."""
    one = client().opened(initial_window_size=0)
    one.peer(settings(initial_window_size=6))
    one.connection.request(REQUEST)
    one.raw()
    one.connection.send(3, b"x")
    assert one.sent() == [Wire(DATA, 0, 3, messages(b"x"))]


@pytest.mark.parametrize("body", [b"x" * 20, b""])
@pytest.mark.parametrize("number", [0, 1])
def test_trailers_wait_behind_messages(body: bytes, number: int) -> None:
    """They go out at once after the last octet, whichever window grows."""
    one = server().opened(initial_window_size=_FIRST_WINDOW if not number else 0)
    if not number:
        one.connection.send(1, b"z" * (_FIRST_WINDOW - 5))
        one.peer(grow(1, 1 << 20))
        one.raw()
    one.connection.send(1, body)
    one.connection.end(1, TRAILERS)
    assert one.raw() == b""
    one.peer(grow(number, len(body) + 5))
    *data, trailers, reset = one.sent()
    assert _data(data) == messages(body)
    assert (trailers.kind, trailers.flags) == (HEADERS, END_HEADERS | END_STREAM)
    assert reset == Wire(RST_STREAM, 0, 1, long(ErrorCode.NO_ERROR))


def test_a_clients_end_waits_behind_messages() -> None:
    """END_STREAM comes after the last octet; a stream that its server ended meanwhile is still written to the end."""
    one = client().opened(initial_window_size=0)
    one.connection.send(1, b"x")
    one.connection.end(1, [])
    one.peer(one.headers(1, RESPONSE), one.headers(1, TRAILERS, END_HEADERS | END_STREAM))
    assert one.raw() == b""
    one.peer(grow(1, 6))
    *data, end = one.sent()
    assert _data(data) == messages(b"x")
    assert end == Wire(DATA, END_STREAM, 1, b"")


@pytest.mark.parametrize("ours", [True, False])
def test_a_reset_forgets_what_waits(ours: bool) -> None:
    """By either end: `unsent` goes back, and a window that grows brings nothing."""
    one = client().opened(initial_window_size=0)
    one.connection.send(1, b"x" * 100)
    assert one.connection.unsent == 105
    if ours:
        one.connection.reset(1, ErrorCode.CANCEL)
    else:
        one.peer(frame(RST_STREAM, 0, 1, long(8)))
    one.raw()
    assert one.connection.unsent == 0
    one.peer(grow(1, 1000), grow(0, 1000))
    assert one.raw() == b""
