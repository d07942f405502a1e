"""Rests between pieces of work, by a clock that moves when it is told to."""

from __future__ import annotations

import pytest

from services.mgmt.ledger.pace import Pace

MILLISECOND = 0.001


class Day:
    """Of a thread: work and rests take as long as they are said to."""

    def __init__(self) -> None:
        self.worked = 0.0
        self.rested: list[float] = []
        self.pace = Pace(lambda: self.worked, self.now, self.rested.append)

    def now(self) -> float:
        return self.worked + sum(self.rested)

    def work(self, seconds: float) -> None:
        self.worked += seconds
        self.pace.rest()


def test_a_rest_is_longer_than_the_piece_before() -> None:
    """Of a core, a fifth is used, however long pieces are."""
    day = Day()
    day.pace.allow(60)
    for milliseconds in (1, 3, 0.5):
        day.work(milliseconds * MILLISECOND)
    assert day.worked <= day.now() / 5 + 1e-9


def test_small_pieces_are_counted_together() -> None:
    """What hardly takes time is not followed by a rest, but is not forgotten either."""
    day = Day()
    day.pace.allow(60)
    for _ in range(100):
        day.work(MILLISECOND / 20)
    assert 0 < len(day.rested) < 50
    assert day.worked <= day.now() / 4


def test_rests_end_when_they_have_to() -> None:
    """All rests together take no longer than is allowed; the work that follows takes none, and leaves none behind."""
    day = Day()
    day.pace.allow(0.010)
    for _ in range(20):
        day.work(MILLISECOND)
    assert sum(day.rested) < 0.010
    day.pace.allow(60)
    day.work(MILLISECOND)
    assert day.rested[-1] == pytest.approx(4 * MILLISECOND)


def test_nothing_rests_unless_it_is_allowed() -> None:
    """A filer that is behind goes on at once."""
    day = Day()
    day.work(MILLISECOND)
    day.pace.allow(0)
    day.work(MILLISECOND)
    assert day.rested == []


def test_hurry_is_for_good() -> None:
    """After a call to hurry there are no rests any more, also where they would be allowed."""
    day = Day()
    day.pace.hurry()
    day.pace.allow(60)
    day.work(MILLISECOND)
    assert day.rested == []
