"""The busiest apart, few moves, and in the end rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.queue.partitions.share import View
from services.queue.partitions.share_by_load import plan

A, B, C = "abc"


def _view(held: Mapping[str, Any], partitions: int = 8, **more: Any) -> View:
    owners = {number: member for member, numbers in held.items() for number in numbers}
    return View(partitions, owners, list(held), **more)


def test_idle_partitions_are_shared_fairly() -> None:
    """Without load all processes get the same number, and keep them."""
    assert plan(_view({A: ()}), A, 1) == (list(range(8)), [])
    assert plan(_view({A: (), B: ()}), A, 8) == ([0, 2, 4, 6], [])
    assert plan(_view({A: range(8), B: ()}), A, 8) == ([], [0, 1, 2, 3])
    assert plan(_view({A: range(4), B: range(4, 8)}), A, 8) == ([], [])


def test_the_busiest_are_apart() -> None:
    """Of two busy partitions in one place one moves, and nothing else."""
    view = _view({A: range(4), B: range(4, 8)}, loads={0: 1000.0, 1: 1000.0})
    assert plan(view, A, 8) == ([], [0])
    assert plan(view, B, 8) == ([], [])
    moved = _view({A: range(1, 4), B: range(4, 8)}, loads={0: 1000.0, 1: 1000.0})
    assert plan(moved, B, 8) == ([0], [])
    assert plan(moved, A, 8) == ([], [])


def test_one_busy_partition_stays() -> None:
    """Moving what is nearly all there is to do would only move the trouble."""
    view = _view({A: range(4), B: range(4, 8)}, loads={0: 1000.0})
    assert plan(view, A, 8) == ([], [])


def test_nearly_even_is_even() -> None:
    """Small differences are not worth a pause of clients."""
    view = _view({A: range(4), B: range(4, 8)}, loads=dict(enumerate([30.0] * 4 + [27.0] * 4)))
    assert plan(view, A, 8) == ([], [])


def test_pins_win() -> None:
    """What is pinned goes where it is pinned and stays there, however busy."""
    held, loads = {A: range(4), B: range(4, 8)}, {0: 1000.0, 4: 1000.0, 5: 1000.0}
    assert plan(_view(held, loads=loads, pins={0: B}), A, 1) == ([], [0])
    free = _view({A: range(1, 4), B: range(4, 8)}, loads=loads, pins={0: B})
    assert plan(free, A, 1)[0] == []
    assert plan(free, B, 1)[0] == [0]


_members = st.lists(st.sampled_from("abcde"), min_size=1, unique=True)


@st.composite
def _views(draw: st.DrawFn) -> View:
    members, partitions = draw(_members), draw(st.integers(1, 40))
    numbers = st.integers(0, partitions - 1)
    owners = draw(st.dictionaries(numbers, st.sampled_from(members)))
    loads = draw(st.dictionaries(numbers, st.floats(0, 10_000)))
    pins = draw(st.dictionaries(numbers, st.sampled_from("abcdefg"), max_size=6))
    return View(partitions, owners, members, pins=pins, loads=loads)


def _settle(view: View, moves: int) -> View:
    """Members act one after the other until none has anything to do."""
    owners = dict(view.owners)
    for _ in range(20 * view.partitions + 20):
        changed = False
        for me in view.members:
            now = View(view.partitions, owners, view.members, pins=view.pins, loads=view.loads)
            acquire, release = plan(now, me, moves)
            assert len(release) <= moves
            assert all(owners[number] == me for number in release)
            assert not owners.keys() & set(acquire)
            owners = {number: owner for number, owner in owners.items() if number not in release}
            owners |= dict.fromkeys(acquire, me)
            changed = changed or bool(acquire or release)
        if not changed:
            return View(view.partitions, owners, view.members, pins=view.pins, loads=view.loads)
    raise AssertionError("partitions wander for ever")


@given(_views(), st.integers(1, 5))
def test_settles(view: View, moves: int) -> None:
    """All partitions find an owner, pins are kept, and then nothing moves any more."""
    rest = _settle(view, moves)
    assert rest.owners.keys() == set(range(view.partitions))
    assert all(rest.owners[number] == view.pinned(number) for number in view.pins if view.pinned(number))


@given(_members, st.integers(1, 40), st.randoms(use_true_random=False), st.integers(1, 8))
def test_as_many_busy_partitions_as_members(members: list[str], idle: int, random: Any, moves: int) -> None:
    """Wherever they begin, in the end every member has one of them."""
    partitions = len(members) + idle
    owners = {number: random.choice(members) for number in range(partitions)}
    busy = random.sample(range(partitions), len(members))
    rest = _settle(View(partitions, owners, members, loads=dict.fromkeys(busy, 1000.0)), moves)
    assert sorted(rest.owners[number] for number in busy) == sorted(members)


@given(_views())
def test_all_processes_come_to_the_same(view: View) -> None:
    """A free partition goes to exactly one member, when all compute it from the same view."""
    acquired = [number for me in view.members for number in plan(view, me, 8)[0]]
    assert len(acquired) == len(set(acquired))
    assert not view.owners.keys() & set(acquired)
