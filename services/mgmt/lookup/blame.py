"""Which gap of the record can hold what an owner would have said of a copy that none has told of. Pure.

The same rule as that of the audit (`spark.terms`): a gap of an owner of its partition, at a time when that may have had
the copy. Where the owner of that time is not known, of any queue process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.common.trace import Gap, Step

# By which clocks may differ.
SLACK_US = 1_000_000
# By which a dead letter is on record after the end that it comes of, as a rule.
_AFTER_US = 1_000_000
# Within which what waits for an owner comes to the next one, or its publisher is taken to have given it up.
WAIT_US = 60_000_000
_EVER, NEVER = -(1 << 62), 1 << 62
_GATEWAY = "gateway"


class Follower(NamedTuple):
    """An owner of a partition: when it took that over, and said of everything in it that it has it; `left_us`, of the
    last one that is known, is since when another may have followed: it handed the partition over, or died.
    """

    time_us: int
    epoch: int
    instance: str
    left_us: int | None = None


_BECOME_LETTERS = {("expired", ""), ("settled", "rejected")}


class Window(NamedTuple):
    """When it happened, if it did: from when the message was there until an owner must have had it."""

    begin: int
    end: int

    def meets(self, begin: int, end: int) -> bool:
        """Whether some of it is between the two; the first is by another clock."""
        return begin <= self.end + SLACK_US and end >= self.begin


EVER = Window(_EVER, NEVER)


def covers(gap: Gap, window: Window) -> bool:
    """Whether rows of then can be missing."""
    return window.meets(_EVER if gap.since_us is None else gap.since_us, gap.time_us)


def after_end(end: Step, gaps: Sequence[Gap]) -> Gap | None:
    """The gap that may hide that a copy with this end, the last that is known, was dead-lettered."""
    if (end.stage, end.outcome) not in _BECOME_LETTERS:
        return None
    window = Window(end.time_us, end.time_us + _AFTER_US)
    return next((gap for gap in gaps if gap.instance == end.instance and covers(gap, window)), None)


def hiding(gaps: Sequence[Gap], owners: Sequence[Follower], window: Window) -> Gap | None:
    """The first to be noticed; `owners` are those of the partition by epoch, as far as they are known."""
    some = [gap for gap in gaps if gap.service != _GATEWAY and covers(gap, window)]
    if not some:
        return None
    terms = _terms(owners)
    return next((gap for gap in some if any(_in_term(gap, *term, window) for term in terms)), None)


def _terms(owners: Sequence[Follower]) -> list[tuple[str | None, int, int]]:
    """Who had it from when until when; None where it is not known who. Nobody is known to come before the first, and
    who follows the last may not have been able to tell.
    """
    if not owners:
        return [(None, _EVER, NEVER)]
    terms: list[tuple[str | None, int, int]] = []
    for place, owner in enumerate(owners):
        following = owners[place + 1] if place + 1 < len(owners) else None
        end = following.time_us if following else NEVER
        terms.append((owner.instance, owner.time_us if place else _EVER, end))
        if following and following.epoch > owner.epoch + 1:
            terms.append((None, owner.time_us, end))
    if owners[0].epoch > 1:
        terms.append((None, _EVER, owners[0].time_us))
    if (left := owners[-1].left_us) is not None:
        terms.append((None, left, NEVER))
    return terms


def _in_term(gap: Gap, instance: str | None, begin: int, end: int, window: Window) -> bool:
    """Whether it is that owner's, and some of it is of its term, and of then."""
    if instance not in {None, gap.instance}:
        return False
    since = max(begin, _EVER if gap.since_us is None else gap.since_us)
    return (
        gap.time_us >= begin - SLACK_US
        and since <= end + SLACK_US
        and window.meets(since, min(gap.time_us, end + SLACK_US))
    )
