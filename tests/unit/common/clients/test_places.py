"""Places in memory that is shared: no two at a time are in each other's way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.places import CHUNK, Places
from services.common.errors import InternalError

_CHUNKS = 3
_STEPS = st.lists(st.one_of(st.integers(1, CHUNK + 1), st.just(CHUNK // 2), st.integers(-8, 0)), max_size=40)


@given(_STEPS)
def test_none_overlaps_another(steps: list[int]) -> None:
    """Whatever is taken and given back, in any order; each lies in one chunk, and there is room when none is taken."""
    places, taken = Places(_CHUNKS), list[tuple[int, int]]()
    for step in steps:
        if step <= 0 and taken:
            places.give_back(taken.pop(-step % len(taken))[0])
        elif step > 0 and (place := places.take(step)) is not None:
            assert 0 <= place // CHUNK == (place + step - 1) // CHUNK < _CHUNKS
            assert all(place + step <= begin or begin + size <= place for begin, size in taken)
            taken.append((place, step))
    for place, _ in taken:
        places.give_back(place)
    assert all(places.take(CHUNK) is not None for _ in range(_CHUNKS))
    assert places.take(1) is None


def test_what_is_warm_is_used_again() -> None:
    """As long as all is given back soon, the same chunk is."""
    places = Places(_CHUNKS)
    for _ in range(3 * _CHUNKS):
        first, second = places.take(CHUNK // 2), places.take(CHUNK // 2)
        assert (first, second) == (0, CHUNK // 2)
        places.give_back(0)
        places.give_back(CHUNK // 2)


def test_what_is_no_place() -> None:
    """Never was, or is no more: a peer that says so is at fault."""
    places = Places(1)
    place = places.take(5)
    assert place is not None
    places.give_back(place)
    for wrong in (place, 1, -1):
        with pytest.raises(InternalError):
            places.give_back(wrong)
