"""How partitions are shared out among queue processes: fairly, staying where they are, and where they were pinned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as the store told it in one answer: all members come to the same shares from the same view.

    `members` serve; `joining` are about to, and a share of the free partitions is left to them, so that processes that
    start together need not move anything afterwards. Pins to processes other than `members` are ignored.
    """

    partitions: int
    owners: Mapping[int, str]
    members: Collection[str]
    joining: Collection[str] = ()
    pins: Mapping[int, str] = field(default_factory=dict)
    loads: Mapping[int, float] = field(default_factory=dict)  # messages a second; none: 0

    def pinned(self, partition: int) -> str | None:
        """The member that the partition is pinned to."""
        member = self.pins.get(partition)
        return member if member in self.members else None


class Placement(Protocol):
    """Which member shall have which partition: plug-ins of group `placements`, chosen by HOPLINE_PLACEMENT. Pure.

    Each member works it out by itself, so it may depend on nothing but the view.
    """

    def plan(self, view: View, me: str, moves: int) -> tuple[list[int], list[int]]:
        """What `me` should acquire and what it should let go of, `moves` at most."""


class FairShare:
    """The placement `fair`: all members have equally many partitions."""

    def plan(self, view: View, me: str, moves: int) -> tuple[list[int], list[int]]:
        """As Placement says."""
        return plan(view, me, moves)


def plan(view: View, me: str, moves: int) -> tuple[list[int], list[int]]:
    """What `me` should acquire and what it should let go of, `moves` at most.

    Free partitions are taken up to the share at once, since no member serves them meanwhile. Pins win over fairness: a
    member with more pinned partitions than its share keeps those, and the others share the rest.
    """
    mine = [number for number, owner in view.owners.items() if owner == me]
    away = [number for number in mine if view.pinned(number) not in {None, me}]
    staying = len(mine) - len(away)
    surplus = max(staying - shares(view, view.members)[me], 0)
    loose = sorted((number for number in mine if view.pinned(number) is None), reverse=True)
    release = [*sorted(away), *loose[:surplus]][:moves]

    free = [number for number in range(view.partitions) if number not in view.owners]
    coming = sum(view.pinned(number) == me and view.owners.get(number) != me for number in view.pins)
    room = shares(view, [*view.members, *view.joining])[me] - staying - coming
    acquire = [number for number in free if view.pinned(number) == me]
    return acquire + [number for number in free if view.pinned(number) is None][: max(room, 0)], release


def shares(view: View, members: Collection[str]) -> dict[str, int]:
    """How many partitions each of `members` should have; together they have all.

    No member gets less than is pinned to it, the others differ by one at most; one more goes to those that hold most.
    """
    pinned = dict.fromkeys(members, 0)
    held = dict.fromkeys(members, 0)
    for number in range(view.partitions):
        if (member := view.pinned(number)) in pinned:
            pinned[member] += 1
        if (owner := view.owners.get(number)) in held:
            held[owner] += 1
    level = _level(view.partitions, list(pinned.values()))
    given = {member: max(count, level) for member, count in pinned.items()}
    rest = view.partitions - sum(given.values())
    able = [member for member in members if pinned[member] <= level]
    for member in sorted(able, key=lambda member: (-held[member], member))[:rest]:
        given[member] += 1
    return given


def _level(partitions: int, pinned: list[int]) -> int:
    """The highest level to which all members can be filled up."""
    low, high = 0, partitions // len(pinned) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(max(count, middle) for count in pinned) <= partitions:
            low = middle
        else:
            high = middle
    return low
