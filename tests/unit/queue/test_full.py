"""Which publishers are held back when memory is short."""

from __future__ import annotations

import pytest

from services.queue.links.full import NOWHERE, Full, Gate

LIMIT = 1000


@pytest.mark.parametrize(
    ("holdings", "expected"),
    [
        ({1: 1000, 2: 10, 3: 10}, {1}),
        ({1: 340, 2: 340, 3: 340}, {1, 2, 3}),
        ({1: 600, 2: 400, 3: 20}, {1, 2}),
        ({1: 990, **dict.fromkeys(range(2, 12), 1), 12: 20}, {1}),
    ],
)
def test_queues_with_more_than_a_fair_share(holdings: dict[int, int], expected: set[int]) -> None:
    """At the limit publishers are held back from queues that hold the most, and there is always one."""
    gate = Gate(LIMIT)
    assert gate.look(1020, holdings.items())
    assert gate.full == Full(queue_ids=frozenset(expected))


def test_the_bar_falls() -> None:
    """The more the limit is exceeded the smaller a full queue is; a quarter above it, everything is full."""
    gate, holdings = Gate(LIMIT), {1: 900, 2: 150}
    seen = []
    for used in (1010, 1100, 1200, 1240, 1250):
        gate.look(used, holdings.items())
        seen.append(gate.full)
    ones, both = frozenset({1}), frozenset({1, 2})
    assert [full.queue_ids for full in seen[:4]] == [ones, ones, both, both]
    assert seen[4] == Full(everywhere=True)


def test_memory_of_no_queue() -> None:
    """Memory that no queue holds, of transactions for example, holds all publishers back."""
    gate = Gate(LIMIT)
    assert gate.look(1001, [])
    assert gate.full.everywhere


def test_relief() -> None:
    """A full queue stays so until it is clearly below the bar, or memory is no longer short."""
    gate = Gate(LIMIT)
    gate.look(1010, {1: 900, 2: 600}.items())
    assert gate.full.queue_ids == {1}
    gate.look(900, {1: 700, 2: 800}.items())
    assert gate.full.queue_ids == {1, 2}
    gate.look(850, {1: 400, 2: 800}.items())
    assert gate.full.queue_ids == {2}
    assert gate.wants_look(799)
    gate.look(799, {2: 790}.items())
    assert gate.full == NOWHERE


def test_it_seldom_looks() -> None:
    """Below the limit never, and above it when the use has changed by a thirty-second of it."""
    gate = Gate(LIMIT)
    assert not gate.wants_look(1000)
    assert gate.wants_look(1001)
    gate.look(1001, {1: 1001}.items())
    assert not gate.wants_look(1020)
    assert gate.wants_look(1040)
    assert gate.wants_look(960)
