"""For how long publishers wait once there is room again: a disk at its limit must not stop and let go at each look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.store.shortage import ENOUGH, Shortage

_KEPT = 100


class Desk:
    """A disk of which 100 bytes have to be free, looked at each second."""

    def __init__(self) -> None:
        self.shortage = Shortage()
        self.now = 1000.0

    def low_for(self, free: int) -> float:
        """Seconds for which there is a shortage still, with so much free."""
        begun = self.now
        while self.shortage.look(free, _KEPT, self.now):
            self.now += 1
        return self.now - begun

    def low(self, free: int) -> bool:
        return self.shortage.look(free, _KEPT, self.now)


def test_begins_at_once() -> None:
    """With less than has to be free, and not before."""
    desk = Desk()
    assert not desk.low(100)
    assert desk.low(99)


def test_enough_means_a_quarter_more_in_a_row() -> None:
    """What is given back for a moment lets nobody go on."""
    desk = Desk()
    assert desk.low(99)
    for _ in range(20):
        desk.now += 4
        assert desk.low(125)
        desk.now += 4
        assert desk.low(124)
    assert desk.low_for(125) == 5


def test_the_pause_grows_with_each_relapse() -> None:
    """Up to a minute; what was over for a minute begins anew."""
    desk = Desk()
    pauses = []
    for _ in range(6):
        desk.low(99)
        pauses.append(desk.low_for(150))
        desk.now += 1
    assert pauses == [5, 10, 20, 40, 60, 60]
    desk.now += 60
    desk.low(99)
    assert desk.low_for(150) == 5


def test_plenty_of_room() -> None:
    """Is waited for only as the first time, however often it was short before: an operator has made it."""
    desk = Desk()
    for _ in range(4):
        desk.low(99)
        desk.low_for(150)
    assert desk.low(99)
    assert desk.low_for(200) == 5


@pytest.mark.parametrize("kept", [1, _KEPT, 64 << 20])
@given(looks=st.lists(st.tuples(st.floats(0.01, 20), st.floats(0, 3)), max_size=60))
def test_no_two_within_seconds(kept: int, looks: list[tuple[float, float]]) -> None:
    """Whatever the disk does, each shortage lasts five seconds, and begins and ends with the room that says so."""
    shortage, now, begun = Shortage(), 0.0, 0.0
    for passed, share in looks:
        now, free, before = now + passed, int(kept * share), shortage.now
        low = shortage.look(free, kept, now)
        if low and not before:
            assert free < kept
            begun = now
        elif before and not low:
            assert free >= kept * ENOUGH
            assert now - begun >= Shortage.first
