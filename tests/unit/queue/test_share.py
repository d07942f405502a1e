"""Fair, sticky, and where it was pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.queue.partitions.share import View, plan, shares

A, B, C, D = "abcd"


def _view(held: Mapping[str, Any], partitions: int = 8, **more: Any) -> View:
    owners = {number: member for member, numbers in held.items() for number in numbers}
    return View(partitions, owners, list(held), **more)


def test_alone_takes_all() -> None:
    """A process alone takes everything at once."""
    assert plan(_view({A: ()}), A, 1) == (list(range(8)), [])


def test_surplus_goes_in_small_moves() -> None:
    """Of what is more than a fair share a few are let go of at a time."""
    assert plan(_view({A: range(8), B: ()}), A, 3) == ([], [7, 6, 5])
    assert plan(_view({A: range(5), B: range(5, 8)}), A, 3) == ([], [4])


def test_fair_share_stays() -> None:
    """A process with a fair share, rounded up or down, neither takes nor gives."""
    view = _view({A: range(3), B: range(3, 5), C: range(5, 8)})
    assert [plan(view, member, 3) for member in (A, B, C)] == [([], [])] * 3


def test_only_what_is_free() -> None:
    """What others hold is not asked for, and not more than the share."""
    assert plan(_view({A: [0], B: [1], C: [2, 3]}), A, 3) == ([4, 5], [])


def test_shares_differ_by_one() -> None:
    """Ten partitions of four processes are 3, 3, 2, 2, and those who hold most already keep most."""
    view = _view({A: [0], B: [1, 2, 3], C: [4, 5, 6], D: [7, 8, 9]}, partitions=10)
    assert shares(view, view.members) == {A: 2, B: 3, C: 3, D: 2}
    assert plan(view, D, 8) == ([], [9])


def test_joining_members_find_their_share() -> None:
    """What is free is left to members that are coming, and nothing is let go of for them yet."""
    assert plan(_view({A: ()}, joining=[B]), A, 1) == ([0, 1, 2, 3], [])
    assert plan(_view({A: range(8)}, joining=[B]), A, 1) == ([], [])


def test_pinned_partition_moves() -> None:
    """The owner lets go of what is pinned elsewhere; when it is free, only the one it is for takes it."""
    held = {A: range(4), B: range(4, 8)}
    assert plan(_view(held, pins={0: B}), A, 1) == ([], [0])
    free = _view({A: range(1, 4), B: range(4, 8)}, pins={0: B})
    assert plan(free, A, 1) == ([], [])
    assert plan(free, B, 1) == ([0], [])


def test_what_was_pinned_is_made_up_for() -> None:
    """A process that got a pinned partition gives one back that is not pinned, so that shares stay fair."""
    view = _view({A: range(1, 4), B: [0, *range(4, 8)]}, pins={0: B})
    assert plan(view, B, 8) == ([], [7])


def test_more_pins_than_a_share() -> None:
    """Pins win over fairness, and the others share the rest."""
    view = _view({A: range(6), B: [6], C: [7]}, pins=dict.fromkeys(range(6), A))
    assert shares(view, view.members) == {A: 6, B: 1, C: 1}
    assert [plan(view, member, 8) for member in (A, B, C)] == [([], [])] * 3


def test_pin_to_no_process() -> None:
    """A pin to a member that does not serve says nothing."""
    view = _view({A: range(4), B: range(4, 8)}, pins={0: "dead", 5: C}, joining=[C])
    assert [plan(view, member, 8) for member in (A, B)] == [([], [])] * 2


_members = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)


@st.composite
def _views(draw: st.DrawFn) -> View:
    members, partitions = draw(_members), draw(st.integers(1, 40))
    someone = st.sampled_from("abcdefg")
    numbers = st.integers(0, partitions - 1)
    # Leases of members that are not alive are not shown; pins to them stay.
    owners = draw(st.dictionaries(numbers, st.sampled_from(members)))
    return View(partitions, owners, members, pins=draw(st.dictionaries(numbers, someone, max_size=10)))


@given(_views())
def test_shares_add_up(view: View) -> None:
    """All shares together are all partitions; without pins they differ by one at most, with pins only upwards."""
    given_out = shares(view, view.members)
    pinned = {member: sum(view.pinned(number) == member for number in view.pins) for member in view.members}
    assert sum(given_out.values()) == view.partitions
    lowest = min(given_out.values())
    assert all(pinned[member] <= share for member, share in given_out.items())
    assert all(share <= max(lowest + 1, pinned[member]) for member, share in given_out.items())


@given(_views(), st.integers(1, 5))
def test_settles(view: View, moves: int) -> None:
    """Members that act one after the other come to rest: all partitions owned, pins kept, shares as they should be.

    No process gives up more than `moves` at a time, or takes what is not free, and nothing moves without need.
    """
    owners = dict(view.owners)
    given_up = 0
    for _ in range(2 * view.partitions + 2):
        changed = False
        for me in view.members:
            now = View(view.partitions, owners, view.members, pins=view.pins)
            acquire, release = plan(now, me, moves)
            assert len(release) <= moves
            assert all(owners[number] == me for number in release)
            assert not owners.keys() & set(acquire)
            owners = {number: owner for number, owner in owners.items() if number not in release}
            owners |= dict.fromkeys(acquire, me)
            given_up += len(release)
            changed = changed or bool(acquire or release)
        if not changed:
            break
    assert owners.keys() == set(range(view.partitions))
    assert all(owners[number] == view.pinned(number) for number in view.pins if view.pinned(number))
    rest = View(view.partitions, owners, view.members, pins=view.pins)
    held = {member: sum(owner == member for owner in owners.values()) for member in view.members}
    assert shares(rest, view.members) == held
    assert given_up <= _needed(view)


def _needed(view: View) -> int:
    """The least moves possible: away from where pins forbid it, and down to the share."""
    away = sum(view.pinned(number) not in {None, owner} for number, owner in view.owners.items())
    goal = shares(view, view.members)
    held = {member: sum(owner == member for owner in view.owners.values()) for member in view.members}
    surplus = sum(max(held[member] - goal[member], 0) for member in view.members)
    incoming = sum(view.owners.get(number) != view.pinned(number) for number in view.pins if view.pinned(number))
    return away + surplus + incoming


@given(st.integers(1, 64), _members, st.sampled_from("xyz"))
def test_newcomer_costs_its_share(partitions: int, members: list[str], newcomer: str) -> None:
    """From a settled cluster only what the newcomer is to have moves, and from it when it leaves nothing else."""
    owners = {number: members[number % len(members)] for number in range(partitions)}
    view = View(partitions, owners, [*members, newcomer])
    released = [plan(view, member, partitions)[1] for member in members]
    assert sum(map(len, released)) == shares(view, view.members)[newcomer]
    assert sum(map(len, released)) <= partitions // (len(members) + 1) + 1
