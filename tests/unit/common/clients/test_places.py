"""Places in memory that is shared: no two at a time are in each other's way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.places import CHUNK, Places
from services.common.errors import InternalError

_CHUNKS = 3
_SIZES = st.one_of(st.integers(0, CHUNK + 1), st.sampled_from([0, CHUNK // 2, CHUNK]))
_STEPS = st.lists(st.tuples(st.booleans(), _SIZES), max_size=40)


@given(_STEPS)
def test_none_overlaps_another(steps: list[tuple[bool, int]]) -> None:
    """Whatever is taken and given back, in any order; each lies in one chunk, and there is room when none is taken."""
    places, taken = Places(_CHUNKS), list[tuple[int, int]]()
    for gives, size in steps:
        if gives and taken:
            places.give_back(taken.pop(size % len(taken))[0])
        elif not gives and (place := places.take(size)) is not None:
            end = place + max(size, 1)
            assert 0 <= place // CHUNK == (end - 1) // CHUNK < _CHUNKS
            assert all(end <= its or its_end <= place for its, its_end in taken)
            taken.append((place, end))
    for place, _ in taken:
        places.give_back(place)
    assert all(places.take(CHUNK) is not None for _ in range(_CHUNKS))
    assert places.take(1) is None


def test_what_is_empty() -> None:
    """Each has a place of its own, also behind what has filled a part of the memory."""
    places = Places(_CHUNKS)
    found = [places.take(size) for size in (0, 0, CHUNK - 2, 0, CHUNK, 0)]
    assert found == [0, 1, 2, CHUNK, 2 * CHUNK, None]
    for place in (1, 0, 2, 2 * CHUNK, CHUNK):
        places.give_back(place)
    assert all(places.take(CHUNK) is not None for _ in range(_CHUNKS))


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
