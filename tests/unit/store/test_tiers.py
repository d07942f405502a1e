"""Which partitions are read together, and in which order their batches."""

from __future__ import annotations

from random import Random

import pytest

from services.store.chunks import in_turns
from services.store.recovery import tiers


def test_those_of_a_size() -> None:
    """All that have few batches, or up to four times what the smallest of them has; small ones first."""
    assert list(tiers({})) == []
    assert list(tiers({3: 1, 1: 512, 2: 7})) == [[3, 2, 1]]
    assert list(tiers({1: 100_000, 2: 4000, 3: 1000, 4: 5, 5: 17_000})) == [[4], [3, 2], [5], [1]]


@pytest.mark.parametrize("count", [1, 3, 64])
@pytest.mark.parametrize("apart", [False, True])
def test_by_id(count: int, apart: bool) -> None:
    """All of them, so many at a time that nobody has to wait for a million to be sorted, and not few at a time."""
    random, numbers = Random(7), range(300_000)
    some: list[list[int]] = [[] for _ in range(count + 1)]  # one has none
    for number in numbers:
        some[number * count // len(numbers) if apart else random.randrange(count)].append(number)
    turns = list(in_turns(some))
    assert [number for turn in turns for number in turn] == list(numbers)
    assert max(map(len, turns)) <= 1 << 15
    assert len(turns) < 700


def test_none() -> None:
    """Where no partition has any, there is no turn."""
    assert list(in_turns([])) == list(in_turns([[], []])) == []
