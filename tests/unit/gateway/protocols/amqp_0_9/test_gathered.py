"""A body in several frames is put together as it came, and takes no memory before half of it is there."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.protocols.amqp_0_9.gathered import Gathered
from services.gateway.protocols.dealings import LARGE

_SIZES = st.one_of(st.integers(1, 50), st.integers(LARGE - 2, LARGE + 2), st.integers(LARGE, 4 * LARGE))


@given(_SIZES, st.lists(st.floats(0, 1), max_size=8), st.booleans())
def test_as_it_came(size: int, cuts: list[float], lent: bool) -> None:
    """Cut anywhere, also into nothing; what was lent is something else by then."""
    body = bytes(number * 7 % 256 for number in range(size))
    gathered, at = Gathered(size), 0
    for end in (*sorted(round(cut * size) for cut in cuts), size):
        room = bytearray(body[at:end])
        gathered.add(memoryview(room) if lent else bytes(room))
        room[:] = bytes(len(room))
        at = end
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
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < most * size
    assert gathered


def test_nothing_is_copied_when_it_is_whole() -> None:
    """Twice the size is never taken."""
    size = 4 << 20
    piece = bytes(size // 8)
    tracemalloc.start()
    try:
        gathered = Gathered(size)
        for _ in range(8):
            gathered.add(memoryview(piece))
        assert len(gathered.take()) == size
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.7 * size
