"""Which partitions are read together."""

from __future__ import annotations

from services.store.recovery import tiers


def test_those_of_a_size() -> None:
    """All that have few batches, or up to four times what the smallest of them has; small ones first."""
    assert list(tiers({})) == []
    assert list(tiers({3: 1, 1: 512, 2: 7})) == [[3, 2, 1]]
    assert list(tiers({1: 100_000, 2: 4000, 3: 1000, 4: 5, 5: 17_000})) == [[4], [3, 2], [5], [1]]
