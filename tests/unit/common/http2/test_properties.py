"""Two ends back to back, and one end whose bytes come in any pieces."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from services.common.http2.connection import Http2Connection
from services.common.http2.events import Ended, Event, Headers, Message
from tests.support.http2_transcript import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    LARGEST_MESSAGE,
    PADDED,
    PING,
    PREFACE,
    REQUEST,
    RESPONSE,
    TRAILERS,
    Transcript,
    frame,
    grow,
    messages,
    receive,
    server,
    settings,
)

_BODIES = st.binary(max_size=30) | st.builds(bytes, st.integers(0, 70_000))
_SENDS = st.lists(st.tuples(st.booleans(), st.sampled_from([1, 3]), _BODIES), max_size=12)
_PIECES = st.lists(st.integers(1, 400), min_size=1, max_size=20)


def recorded(one: Transcript) -> bytes:
    """What a client might say that uses everything."""
    block, last = one.block(REQUEST), one.block(REQUEST)
    return b"".join((
        PREFACE,
        settings(initial_window_size=3000, unknown=1),
        frame(HEADERS, 0, 1, block[:5]) + frame(CONTINUATION, END_HEADERS, 1, block[5:]),
        frame(DATA, 0, 1, messages(b"a" * 10, b"", b"b" * 300)[:150]),
        frame(PING, 0, 0, b"12345678"),
        frame(DATA, PADDED, 1, b"\x03" + messages(b"a" * 10, b"", b"b" * 300)[150:] + bytes(3)),
        frame(0xAB, 0, 0, b"unknown"),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, last),
        grow(0, 1000) + grow(1, 100) + settings(max_frame_size=20_000),
        frame(DATA, END_STREAM, 1, messages(b"end")),
    ))  # fmt: skip


@given(_PIECES)
def test_pieces_make_no_difference(sizes: list[int]) -> None:
    """However the bytes are cut, the same events come, and the same is answered."""
    whole, pieced = server(), server()
    data = recorded(whole)
    expected = whole.peer(data)
    events: list[Event] = []
    said = b""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        events += pieced.peer(data[at : at + size])
        said += pieced.raw()
        at, turn = at + size, turn + 1
    assert events == expected
    assert [type(event).__name__ for event in expected] == [
        "Ready", "Headers", "Message", "Message", "Message", "Headers", "Message", "Ended",
    ]  # fmt: skip
    assert said == whole.raw()


_MESSAGE = messages(bytes(40))
_PAYLOADS = st.sampled_from([
    _MESSAGE, messages(b""), messages(b"a", b"b"), _MESSAGE[:20], _MESSAGE[20:], b"", b"\0\0", b"\1" + _MESSAGE[1:],
    messages(bytes(LARGEST_MESSAGE))[:30],
])  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from([1, 3]), st.sampled_from([0, 0, END_STREAM]), _PAYLOADS), max_size=12))
def test_a_frame_that_is_read_alone_is_as_any_other(sent: list[tuple[int, int, bytes]]) -> None:
    """A message, several, a part of one, or a fault: the same events and answers as when all is read at once."""
    at_once, alone = server().opened(1, 3), server().opened(1, 3)
    frames = [frame(DATA, flags, stream, payload) for stream, flags, payload in [*sent, (1, 0, _MESSAGE)]]
    events: list[Event] = []
    said = b""
    for each in frames:
        events += alone.peer(each)
        said += alone.raw()
    assert events == at_once.peer(b"".join(frames))
    assert said == at_once.raw()


class _Pair:
    """A client and a server, each told windows and frame sizes that are not those of its peer."""

    def __init__(self, windows: tuple[int, int], frame_size: int) -> None:
        self.client = Http2Connection(is_client=True, largest_message=LARGEST_MESSAGE)
        self.server = Http2Connection(is_client=False, largest_message=LARGEST_MESSAGE)
        self.come: dict[Http2Connection, list[Event]] = {self.client: [], self.server: []}
        self.pass_on()
        for end, window in zip((self.client, self.server), windows, strict=True):
            receive(end, settings(initial_window_size=window, max_frame_size=frame_size))

    def pass_on(self) -> None:
        """Until neither has anything to say."""
        while any([self._pass(self.client, self.server), self._pass(self.server, self.client)]):
            pass

    def _pass(self, teller: Http2Connection, hearer: Http2Connection) -> bool:
        data = b"".join(teller.data_to_send())
        # The last message of the transcript may come together with anything else.
        self.come[hearer] += receive(hearer, data)
        return bool(data)

    def open(self) -> None:
        for number in (1, 3):
            assert self.client.request(REQUEST) == number
            self.pass_on()
            self.server.respond(number, RESPONSE)
        self.pass_on()

    def drain(self) -> None:
        """Windows grow little by little until nothing waits."""
        turn = 0
        while self.client.unsent or self.server.unsent:
            turn += 1
            assert turn < 10_000
            for end in (self.client, self.server):
                for number in (0, 1, 3):
                    if number == 0 or number in end._streams:
                        receive(end, grow(number, 997 * turn))
            self.pass_on()


def _messages(events: list[Event], stream: int) -> list[bytes]:
    return [event.data for event in events if isinstance(event, Message) and event.stream == stream]


@given(_SENDS, st.tuples(st.integers(0, 300), st.integers(0, 20_000)), st.integers(16_384, 70_000), st.booleans())
def test_all_messages_arrive(
    sends: list[tuple[bool, int, bytes]], windows: tuple[int, int], frame_size: int, at_once: bool
) -> None:
    """Whole and in order, through any windows and frame sizes; then nothing is unsent, and the ends are told."""
    pair = _Pair(windows, frame_size)
    pair.open()
    for by_client, stream, body in sends:
        (pair.client if by_client else pair.server).send(stream, body)
        if not at_once:
            pair.pass_on()
    for number in (1, 3):
        pair.client.end(number, [])
    pair.pass_on()
    pair.drain()
    for number in (1, 3):
        pair.server.end(number, TRAILERS)
    pair.drain()
    pair.pass_on()
    for stream in (1, 3):
        to_server = [body for by_client, number, body in sends if by_client and number == stream]
        to_client = [body for by_client, number, body in sends if not by_client and number == stream]
        assert _messages(pair.come[pair.server], stream) == to_server
        assert _messages(pair.come[pair.client], stream) == to_client
        assert Ended(stream) in pair.come[pair.server]
        assert Headers(stream, TRAILERS, True) in pair.come[pair.client]
    assert (pair.client.unsent, pair.server.unsent) == (0, 0)
    assert not list(chain(pair.client._streams, pair.server._streams))
