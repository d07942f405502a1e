"""Conversations with the `h2` library, which raises what its windows and states do not allow: our oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.http2 import connection, writing
from services.common.http2.settings import Setting
from tests.support.h2_ends import End, OurEnd, TheirEnd
from tests.support.http2_transcript import REQUEST, RESPONSE, TRAILERS, messages
from tests.support.steady import STEADY

OUR_WINDOW, OUR_CONNECTION = (
    70_000,
    100_000,
)  # small, so that they matter; a peer may use 65,535 before it hears of them


@contextmanager
def small_windows() -> Iterator[None]:
    """Of ours, for new connections."""
    with (
        mock.patch.dict(connection.OURS, {Setting.INITIAL_WINDOW_SIZE: OUR_WINDOW}),
        mock.patch.object(writing, "_STREAM_WINDOW", OUR_WINDOW),
        mock.patch.object(connection, "CONNECTION_WINDOW", OUR_CONNECTION),
    ):
        yield


class Talk:
    """Both ends, what is on its way between them, and what has been sent."""

    def __init__(self, *, we_ask: bool, frames: list[tuple[int, int]]) -> None:
        self.ours = OurEnd(is_client=we_ask)
        self.theirs = TheirEnd(is_client=not we_ask, frames=frames)
        self.client: End = self.ours if we_ask else self.theirs
        self.wires = {self.ours: bytearray(), self.theirs: bytearray()}  # to whom
        self.sent: defaultdict[tuple[End, int], bytearray] = defaultdict(bytearray)
        self.pings: defaultdict[End, int] = defaultdict(int)

    # -------------------------------------------------------------- steps, by name

    def request(self) -> None:
        if len(self.client.known) < 4:
            self.client.request()

    def send(self, us: bool, which: int, size: int) -> None:
        end = self._end(us)
        if (number := _pick(end, which)) and end.may_send(number):
            body = bytes((len(self.sent[end, number]) % 251, size % 251)) * (size // 2) + b"x" * (size % 2)
            end.send(number, body)
            self.sent[end, number] += messages(body)

    def end(self, us: bool, which: int) -> None:
        end = self._end(us)
        if (number := _pick(end, which)) and end.may_send(number):
            self._spare_h2(number)
            end.end(number)

    def _spare_h2(self, number: int) -> None:
        """An empty frame may end a stream whose window was made negative (section 6.9.1); h2 thinks it may not."""
        stream = self.ours.connection._streams.get(number)
        if stream and stream.window < 0:
            self.theirs.grant(number, -stream.window)
            self.settle()

    def reset(self, us: bool, which: int) -> None:
        end = self._end(us)
        if (number := _pick(end, which)) and number not in end.over and not {number} <= end.ended & end.peer_ended:
            end.reset(number)

    def ping(self, us: bool) -> None:
        self._end(us).ping()
        self.pings[self._end(us)] += 1

    def change(self, setting: int, value: int) -> None:
        self.theirs.change(setting, value)

    def grant(self, which: int, size: int) -> None:
        self.theirs.grant(_pick(self.theirs, which) or 0, size)

    def carry(self, to_us: bool, size: int) -> bool:
        """So many octets, or fewer; whether there were any."""
        hearer, teller = (self.ours, self.theirs) if to_us else (self.theirs, self.ours)
        wire = self.wires[hearer]
        wire += teller.said()
        data = bytes(wire[:size])
        del wire[:size]
        if data:
            hearer.hear(data)
        return bool(data)

    def settle(self) -> None:
        """Until nothing is on its way. Then each end knows the windows of the other, and holds nothing back."""
        while any([self.carry(True, 1 << 30), self.carry(False, 1 << 30)]):
            pass
        ours, theirs = self.ours.connection, self.theirs.h2
        assert ours._sending._window == theirs.inbound_flow_control_window >= 0
        assert ours._receiving.left == theirs.outbound_flow_control_window > 0
        for number, stream in ours._streams.items():
            assert stream.window == theirs.streams[number].inbound_flow_control_window
            assert stream.receiving.left == theirs.streams[number].outbound_flow_control_window > 0
            assert not stream.unsent or min(ours._sending._window, stream.window) <= 0
        assert ours.unsent == sum(len(part) for stream in ours._streams.values() for part in stream.unsent)
        assert not any(self.theirs.unsent.values()), "our windows are open, as they always are soon"

    def drain(self) -> None:
        """Their windows open until nothing waits."""
        self.settle()
        turns = 0
        while self.ours.connection.unsent:
            turns += 1
            assert turns < 2000
            for number in (0, *self.theirs.known):
                self.theirs.grant(number, 1000 * turns)
            self.settle()

    def _end(self, us: bool) -> End:
        return self.ours if us else self.theirs


def _pick(end: End, which: int) -> int | None:
    return end.known[which % len(end.known)] if end.known else None


_WHO, _WHICH = st.booleans(), st.integers(0, 3)
_SIZES = st.integers(0, 40) | st.sampled_from([16_379, 16_380, 65_530, 65_531]) | st.integers(0, 100_000)
_CHANGES = (
    st.tuples(st.just(int(Setting.INITIAL_WINDOW_SIZE)), st.integers(0, 100) | st.integers(0, 200_000))
    | st.tuples(st.just(int(Setting.MAX_FRAME_SIZE)), st.integers(16_384, 100_000))
    | st.tuples(st.just(int(Setting.HEADER_TABLE_SIZE)), st.integers(0, 10_000))
    | st.tuples(st.just(int(Setting.MAX_HEADER_LIST_SIZE)), st.integers(1000, 10_000))
)
_STEPS = st.one_of(
    st.tuples(st.just("request")),
    *[st.tuples(st.just("send"), _WHO, _WHICH, _SIZES)] * 4,
    st.tuples(st.just("carry"), _WHO, st.integers(1, 30) | st.integers(1, 100_000)),
    st.tuples(st.just("carry"), _WHO, st.just(1 << 30)),
    st.tuples(st.just("grant"), _WHICH, st.integers(1, 50_000)),
    _CHANGES.map(lambda change: ("change", *change)),
    st.tuples(st.just("ping"), _WHO),
    st.tuples(st.just("end"), _WHO, _WHICH),
    st.tuples(st.just("reset"), _WHO, _WHICH),
    st.tuples(st.just("settle")),
)
_FRAMES = st.lists(st.tuples(st.integers(1, 20_000), st.sampled_from([0, 0, 1, 255])), max_size=4).map(
    lambda frames: [*frames, (30_000, 0)]  # small ones alone would take for ever
)
_TALKS = st.lists(_STEPS, max_size=5) | st.lists(_STEPS, min_size=20, max_size=60)  # those of one list are short


def _carried_out(we_ask: bool, frames: list[tuple[int, int]], steps: list[tuple]) -> Talk:
    talk = Talk(we_ask=we_ask, frames=frames)
    talk.request()
    for name, *arguments in steps:
        getattr(talk, name)(*arguments)
    return talk


def _check_all_has_come(talk: Talk) -> None:
    for teller, hearer in ((talk.ours, talk.theirs), (talk.theirs, talk.ours)):
        for number in talk.client.known:
            come, sent = hearer.come[number], talk.sent[teller, number]
            if number in talk.ours.over | talk.theirs.over:
                assert sent.startswith(come)
            else:
                assert come == sent
        assert teller.pongs == talk.pings[teller]


@pytest.mark.fuzz
@STEADY
@given(st.booleans(), _FRAMES, _TALKS)
def test_conversations(we_ask: bool, frames: list[tuple[int, int]], steps: list[tuple]) -> None:
    """Both ends get the same messages, in order, with anything in between; no window is overrun, nothing stalls."""
    with small_windows():
        talk = _carried_out(we_ask, frames, steps)
        talk.drain()
        server = talk.theirs if we_ask else talk.ours
        for end in (talk.client, server):
            for which in range(len(end.known)):
                talk.end(end is talk.ours, which)
            talk.drain()
    _check_all_has_come(talk)
    for number in set(talk.client.known) - talk.ours.over - talk.theirs.over:
        assert (server.fields[number], talk.client.fields[number]) == ([REQUEST], [RESPONSE, TRAILERS])
    assert not talk.ours.connection._streams
    assert talk.theirs.h2.open_outbound_streams + talk.theirs.h2.open_inbound_streams == 0


@pytest.mark.fuzz
@STEADY
@given(st.booleans(), st.booleans(), _FRAMES, _TALKS)
def test_the_last_word(we_part: bool, we_ask: bool, frames: list[tuple[int, int]], steps: list[tuple]) -> None:
    """GOAWAY is understood in the middle of anything, and what was said before it arrives."""
    with small_windows():
        talk = _carried_out(we_ask, frames, steps)
        teller, hearer = (talk.ours, talk.theirs) if we_part else (talk.theirs, talk.ours)
        teller.go_away()
        while talk.carry(not we_part, 1 << 30):
            pass
    assert hearer.gone is not None
    last, code = hearer.gone
    assert code == 0
    if teller is not talk.client:
        assert last in (0, *teller.known)
    if talk.ours is talk.client is hearer:
        assert {number for number in hearer.known if number > last} <= hearer.over | (hearer.ended & hearer.peer_ended)
    for number in talk.client.known:
        assert talk.sent[teller, number].startswith(hearer.come[number])


@pytest.mark.parametrize("we_ask", [True, False])
def test_windows_as_they_are(we_ask: bool) -> None:
    """More than they hold goes through, those of two streams and the connection's: they grow in time."""
    talk = _carried_out(we_ask, [(1 << 20, 0)], [("request",), ("settle",)])
    for which in (0, 1) * 17:
        talk.send(False, which, 1 << 20)
        talk.settle()
    _check_all_has_come(talk)
