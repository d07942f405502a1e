"""A body in several frames is put together as it came, and takes no memory before half of it is there."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.protocols.amqp_0_9.gathered import Gathered
from services.gateway.protocols.dealings import LARGE

_SIZES = st.one_of(st.integers(1, 50), st.integers(LARGE - 2, LARGE + 2), st.integers(LARGE, 4 * LARGE))


@given(_SIZES, st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=8), st.booleans())
def test_as_it_came(size: int, cuts: list[tuple[float, bool]], lent: bool) -> None:
    """Cut anywhere, also into nothing, in any number of reads; what a read lent is something else by the next."""
    body = bytes(number * 7 % 256 for number in range(size))
    gathered, at, rooms = Gathered(size), 0, list[bytearray]()
    for cut, read_ends in (*sorted(cuts), (1.0, False)):
        end = round(cut * size)
        rooms.append(bytearray(body[at:end]))
        gathered.add(memoryview(rooms[-1]) if lent else bytes(rooms[-1]))
        at = end
        if read_ends:
            gathered.keep()
            for room in rooms:
                room[:] = bytes(len(room))
    assert gathered.take() == body


@pytest.mark.parametrize(("come", "most"), [(0.1, 0.2), (0.45, 0.55), (0.6, 1.2)])
def test_memory(come: float, most: float) -> None:
    """Of a body of which no more comes."""
    size = 1 << 20
    piece = bytes(size // 100)
    tracemalloc.start()
    try:
        gathered = Gathered(size)
        for _ in range(round(come * 100)):
            gathered.add(memoryview(piece))
            gathered.keep()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < most * size
    assert gathered


@pytest.mark.parametrize(("reads", "lent"), [(1, True), (8, True), (8, False)])
def test_nothing_is_copied_when_it_is_whole(reads: int, lent: bool) -> None:
    """Twice the size is never taken, whether it comes in one read or in several."""
    size = 4 << 20
    piece = bytes(size // 8)
    tracemalloc.start()
    try:
        gathered = Gathered(size)
        for _ in range(8):
            gathered.add(memoryview(piece) if lent else bytes(memoryview(piece)))
            if lent and reads > 1:
                gathered.keep()
        assert len(gathered.take()) == size
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.7 * size
