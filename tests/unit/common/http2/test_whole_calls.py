"""Calls with one request and one answer, which are written and read in a quicker way than their frames one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.http2.events import Ended, Event, Headers, Message
from tests.support.http2_transcript import (
    REQUEST,
    RESPONSE,
    TRAILERS,
    Transcript,
    client,
    receive,
    server,
    settings,
)

_SIZES = st.integers(0, 40) | st.sampled_from([16_379, 16_380, 65_530, 65_531]) | st.integers(0, 100_000)
_WINDOWS = st.sampled_from([0, 20, 65_535, 1 << 20])


class _Pair:
    """Two ends of ours; `whole`: calls are asked and answered by the methods for that, else step by step."""

    def __init__(self, window: int, *, whole: bool) -> None:
        self.client, self.server = client(), server()
        self.whole = whole
        self.carry()
        for one, other in ((self.client, self.server), (self.server, self.client)):
            one.peer(settings(initial_window_size=window))
            other.raw()
            one.raw()

    def carry(self) -> tuple[list[Event], list[Event]]:
        """Until nothing is on its way: what the server and the client hear."""
        heard: tuple[list[Event], list[Event]] = [], []
        while (asked := self.client.raw()) + (answered := self.server.raw()):
            heard[0].extend(receive(self.server.connection, asked))
            heard[1].extend(receive(self.client.connection, answered))
        return heard

    def ask(self, body: bytes) -> int:
        connection = self.client.connection
        if self.whole:
            return connection.ask(REQUEST, body)
        number = connection.request(REQUEST)
        connection.send(number, body)
        connection.end(number, [])
        return number

    def answer(self, number: int, body: bytes) -> None:
        connection = self.server.connection
        if self.whole:
            connection.answer(number, RESPONSE, body, TRAILERS)
        else:
            connection.respond(number, RESPONSE)
            connection.send(number, body)
            connection.end(number, TRAILERS)

    def windows(self) -> list[int]:
        return [one.connection._sending._window for one in (self.client, self.server)]

    def is_idle(self) -> bool:
        return not self.client.connection._streams and not self.server.connection._streams


@given(_WINDOWS, st.lists(st.tuples(_SIZES, _SIZES, st.booleans()), min_size=1, max_size=6))
def test_whole_or_step_by_step(window: int, calls: list[tuple[int, int, bool]]) -> None:
    """Both ends hear the same, and their windows are the same, whatever fits; an answer may come before the request."""
    pairs = [_Pair(window, whole=whole) for whole in (True, False)]
    for size, answered, early in calls:
        heard = []
        for pair in pairs:
            number = pair.ask(bytes(size))
            came = [pair.carry()] if not early else []
            receive(pair.server.connection, pair.client.raw()) if early else None
            pair.answer(number, bytes(answered))
            heard.append([*came, pair.carry(), pair.windows(), pair.is_idle()])
        assert heard[0] == heard[1]


@given(st.lists(st.tuples(_SIZES, _SIZES), min_size=1, max_size=5), st.lists(st.integers(1, 60_000), max_size=12))
def test_in_pieces(calls: list[tuple[int, int]], pieces: list[int]) -> None:
    """What is read together, or cut anywhere, is the same."""
    pair = _Pair(1 << 20, whole=True)
    numbers = [pair.ask(bytes(size)) for size, _ in calls]
    asked = pair.client.raw()
    expected = [
        event
        for number, (size, _) in zip(numbers, calls, strict=True)
        for event in (Headers(number, REQUEST, False), Message(number, bytes(size)), Ended(number))
    ]
    assert _cut(pair.server, asked, pieces) == expected
    for number, (_, size) in zip(numbers, calls, strict=True):
        pair.answer(number, bytes(size))
    expected = [
        event
        for number, (_, size) in zip(numbers, calls, strict=True)
        for event in (
            Headers(number, RESPONSE, False),
            Message(number, bytes(size)),
            Headers(number, TRAILERS, True),
        )
    ]
    assert _cut(pair.client, pair.server.raw(), pieces) == expected
    assert pair.is_idle()


def test_an_answer_to_nobody() -> None:
    """Of a call that was reset, or answered before, nothing is said."""
    pair = _Pair(1 << 20, whole=True)
    number = pair.ask(b"question")
    pair.carry()
    pair.answer(number, b"answer")
    pair.carry()
    pair.answer(number, b"again")
    pair.answer(number + 2, b"to whom?")
    assert pair.server.raw() == b""


def _cut(one: Transcript, data: bytes, pieces: list[int]) -> list[Event]:
    heard: list[Event] = []
    for size in pieces:
        heard += receive(one.connection, data[:size])
        data = data[size:]
    return heard + receive(one.connection, data)
