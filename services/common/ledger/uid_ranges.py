"""Uids as ranges: most of what is recorded is one run of consecutive uids. Pure, and fast where that holds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

Ranges = tuple[Sequence[int], Sequence[int]]  # the first uid of each range, and how many uids it has


def compress(uids: Sequence[int], *, in_order: bool = False) -> Ranges:
    """The ranges of `uids`, each of which is there once: ascending, or `in_order`, as they are given."""
    count = len(uids)
    if isinstance(uids, range):
        return ((uids.start,), (count,)) if uids.step == 1 else (uids, [1] * count)
    if count == 1:
        return uids, (1,)
    ordered = list(uids) if in_order else sorted(uids)
    # When highest minus lowest equals the count minus one, no number between them is missing.
    if not in_order and ordered[-1] - ordered[0] == count - 1:
        return (ordered[0],), (count,)
    return _split(ordered)


def condense(uids: Sequence[int]) -> Sequence[int]:
    """As a range, if `uids` are one: what is kept for a while should not keep an object for each message."""
    if isinstance(uids, range) or uids[-1] - uids[0] != len(uids) - 1 or uids != sorted(uids):
        return uids
    return range(uids[0], uids[-1] + 1)


def _split(uids: list[int]) -> Ranges:
    steps = list(map(sub, uids[1:], uids))
    if 1 not in steps:  # as when a queue's consumers take turns
        return uids, [1] * len(uids)
    breaks = [index for index, step in enumerate(steps, 1) if step != 1]
    starts = [0, *breaks]
    return [uids[start] for start in starts], list(map(sub, [*breaks, len(uids)], starts))


def span(uids: Sequence[int], first: int, count: int) -> Sequence[int]:
    """`count` of the ascending `uids`, from index `first` on; consecutive ones are not looked at one by one."""
    lowest, highest = uids[first], uids[first + count - 1]
    if highest - lowest == count - 1:
        return range(lowest, highest + 1)
    return uids if count == len(uids) and isinstance(uids, list) else list(uids[first : first + count])
