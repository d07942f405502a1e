"""Frames that break the rules, and some that do not, given to ours and to the `h2` library in the same role.

Where h2 ends the connection ours does, with the same code, and where h2 goes on ours goes on. Where we mean to differ,
`tests/support/h2_differences.py` says why.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.h2_differences import DIFFERENCES, Difference, Pair
from tests.support.h2_roles import GOES_ON, Outcome
from tests.support.http2_transcript import (
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
    WINDOW_UPDATE,
    Wire,
    frame,
    long,
    messages,
    read,
)
from tests.support.steady import STEADY


def _allowed(pair: Pair, wire: Wire, ours: Outcome, theirs: Outcome) -> list[Difference]:
    return [each for each in DIFFERENCES if each.ours == ours and theirs in each.theirs and each.applies(pair, wire)]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=[each.why[:40] for each in DIFFERENCES])
def test_the_differences_are_these(difference: Difference) -> None:
    """None of the table is idle: its example shows it, and nothing before that differs."""
    pair = Pair(is_client=difference.is_client)
    *before, last = read(difference.shown(pair))
    for wire in before:
        ours, theirs = pair.both(frame(*wire))
        assert ours == theirs == GOES_ON
    assert difference.applies(pair, last)
    ours, theirs = pair.both(frame(*last))
    assert (ours, theirs in difference.theirs) == (difference.ours, True)


_STREAMS = st.sampled_from([1, 1, 1, 3, 3, 5, 5, 7, 9, 0, 2, 4])
_SMALL, _FLAGS = st.binary(max_size=30), st.integers(0, 255)
_NUMBERS = st.sampled_from([0, 1, 2, 100, 16_383, 16_384, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
_BODIES = st.sampled_from([b"", messages(b""), messages(b"x" * 9), messages(b"a", b"bc"), messages(b"ab")[:4]])
_SETTING = st.tuples(st.sampled_from([b"\0" + bytes((each,)) for each in (1, 2, 3, 4, 5, 6, 99)]), _NUMBERS.map(long))


def _padded(kind: int, flags: int, number: int, padding: int | None, rest: bytes) -> bytes:
    if padding is None:
        return frame(kind, flags, number, rest)
    return frame(kind, flags | PADDED, number, bytes((padding,)) + rest + bytes(min(padding, 20)))


def _header_fields(number: int, flags: int, cut: int, part: int, repeat: int) -> Callable[[Pair], bytes]:
    def told(pair: Pair) -> bytes:
        first = TRAILERS if number in (1, 3) else REQUEST
        block = pair.encoder.encode(first)
        if not cut:
            return frame(HEADERS, flags | END_HEADERS, number, block)
        parts = frame(HEADERS, flags, number, block[:cut]) + frame(CONTINUATION, 0, number) * repeat
        return parts + frame(CONTINUATION, END_HEADERS, number + part, block[cut:])

    return told


def _plain(data: bytes) -> Callable[[Pair], bytes]:
    return lambda pair: data


_STEPS = st.one_of(
    st.builds(_header_fields, _STREAMS, st.sampled_from([0, END_STREAM]), st.just(0), st.just(0), st.just(0)),
    st.builds(
        _header_fields, _STREAMS, st.sampled_from([0, END_STREAM]), st.integers(1, 5), st.sampled_from([0, 0, 0, 2]),
        st.sampled_from([0, 0, 3, 70]),
    ),
    st.builds(
        _padded, st.just(DATA), st.sampled_from([0, 0, END_STREAM]), _STREAMS, st.none() | st.integers(0, 30), _BODIES
    ).map(_plain),
    st.builds(lambda *each: frame(WINDOW_UPDATE, 0, each[0], long(each[1])), _STREAMS, _NUMBERS).map(_plain),
    st.lists(_SETTING, max_size=3, unique_by=lambda each: each[0]).map(lambda each: b"".join(map(b"".join, each))).map(
        lambda each: _plain(frame(SETTINGS, 0, 0, each))
    ),
    st.builds(
        lambda *each: frame(PRIORITY, 0, each[0], (long(each[1]) + b"\x0f\0")[: each[2]]),
        _STREAMS, _STREAMS, st.sampled_from([5, 5, 4, 6]),
    ).map(_plain),
    st.builds(lambda *each: frame(each[0], 0, each[1], bytes(each[2])), st.sampled_from([RST_STREAM, PING]), _STREAMS,
              st.sampled_from([4, 8, 3])).map(_plain),
    st.builds(frame, st.integers(0, 12) | st.just(0xAB), _FLAGS, _STREAMS, _SMALL).map(_plain),
    st.tuples(st.sampled_from(["end", "reset"]), st.sampled_from([1, 3])),
)  # fmt: skip


@pytest.mark.fuzz
@STEADY
@given(st.booleans(), st.lists(_STEPS, max_size=3) | st.lists(_STEPS, min_size=5, max_size=25))
def test_hostile_frames(is_client: bool, steps: list[Callable[[Pair], bytes] | tuple[str, int]]) -> None:
    """Frame by frame the same becomes of them; and what was heard until then is the same."""
    pair = Pair(is_client=is_client)
    for step in steps:
        if isinstance(step, tuple):
            pair.say(*step)
        elif not _same(pair, step(pair)):
            break


def _same(pair: Pair, data: bytes) -> bool:
    """Whether both go on, so that more may be compared."""
    for wire in read(data):
        over = {number for number in range(10) if pair.is_over(number)}
        idle = Pair.is_idle(pair, wire.stream)
        ours, theirs = pair.both(frame(*wire))
        if ours != theirs:
            before = _Before(pair.is_client, over, idle)
            assert _allowed(before, wire, ours, theirs), f"{wire}: ours {ours}, theirs {theirs}"
            return False
        assert pair.ours.ended == pair.theirs.ended
        for number in (1, 3, 5, 7, 9):
            assert pair.ours.fields[number] == pair.theirs.fields[number]
            assert pair.ours.messages(number) == pair.theirs.messages(number)
        if ours.ends == "connection" or wire.kind == GOAWAY:  # h2 is closed by one
            return False
    return True


class _Before(Pair):
    """What `applies` looks at, as it was before a frame."""

    def __init__(self, is_client: bool, over: set[int], idle: bool) -> None:
        self.is_client = is_client
        self._over, self._idle = over, idle

    def is_over(self, number: int) -> bool:
        return number in self._over

    def is_idle(self, number: int) -> bool:
        return self._idle
