"""Which partitions to move so that no queue process has much more to do than the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Load(NamedTuple):
    """What a partition keeps its owner busy with, in whichever unit."""

    partition: int
    owner: str
    work: float


class Move(NamedTuple):
    """Partitions that should change their owner."""

    partitions: tuple[int, ...]
    source: str
    target: str
    work: float


# A move is a pause: what is less than so much of the fair share is not worth one.
_WORTHWHILE = 0.05


def suggest(loads: Iterable[Load], most: int) -> list[Move]:
    """At most so many partitions, each from the busiest owner to the idlest while that relieves the busiest."""
    owned: defaultdict[str, list[Load]] = defaultdict(list)
    for load in loads:
        owned[load.owner].append(load)
    work = {owner: sum(load.work for load in theirs) for owner, theirs in owned.items()}
    if not work:
        return []
    least = _WORTHWHILE * sum(work.values()) / len(work)
    moved: defaultdict[tuple[str, str], list[Load]] = defaultdict(list)
    for _ in range(most):
        source, target = max(work, key=lambda one: work[one]), min(work, key=lambda one: work[one])
        best = _best(owned[source], work[source] - work[target], least)
        if best is None:
            break
        owned[source].remove(best)
        work[source] -= best.work
        work[target] += best.work
        moved[source, target].append(best)  # it stays there: what was moved once is not moved again
    return [
        Move(tuple(sorted(load.partition for load in theirs)), source, target, sum(load.work for load in theirs))
        for (source, target), theirs in moved.items()
    ]


def _best(loads: list[Load], difference: float, least: float) -> Load | None:
    """The partition that brings both owners closest together."""
    relieved = [(min(load.work, difference - load.work), load) for load in loads]
    gain, load = max(relieved, default=(0.0, None))
    return load if gain > least else None
