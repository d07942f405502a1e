"""How partitions went from owner to owner: handed over, or left by a dead owner. Pure; times are Unix, in µs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

HANDED_OVER, CRASH, LAPSED, UNKNOWN = "handed_over", "crash", "lapsed", "unknown"

_SLACK = 1_000_000  # by which clocks may differ
_MISSED_AFTER = 60_000_000  # the gap of a dead owner is on record by then


class Owner(NamedTuple):
    """The record of a partition under one epoch."""

    partition: int
    epoch: int
    instance: str
    began: int  # its first word
    ended: int  # and its last
    released: int | None  # when it said that it hands the partition over
    announced: bool  # whether it said that it has taken it over, as owners of older releases do not
    recovered: int  # messages that it found
    handed_over: int  # those among them that the owner before wrote down for it


class Lives(NamedTuple):
    """When instances were heard of last; and of those that died without a word, their last sign of life."""

    heard: Mapping[str, int]
    died: Mapping[str, int]
    record_end: int


class Move(NamedTuple):
    """From one owner to the next."""

    partition: int
    epoch: int  # of the new owner
    source: str
    target: str
    how: str
    last_seen: int  # when the former owner is last known to have had it
    first_seen: int
    recovered: int

    @property
    def silence(self) -> int:
        """Between the two; 0 where clocks disagree."""
        return max(self.first_seen - self.last_seen, 0)


def moves(owners: Iterable[Owner], lives: Lives) -> list[Move]:
    """Each change of owner, by partition and epoch."""
    ordered = sorted(owners, key=lambda owner: (owner.partition, owner.epoch))
    by_partition = groupby(ordered, key=lambda owner: owner.partition)
    return [_move(before, after, lives) for _, its in by_partition for before, after in pairwise(its)]


def _move(before: Owner, after: Owner, lives: Lives) -> Move:
    how, last_seen = _how(before, after, lives), before.ended
    if how == CRASH:
        # It is with the partition as long as it lives, also when there is nothing to tell of it.
        last_seen = min(max(lives.died[before.instance], before.ended), after.began)
    return Move(
        after.partition, after.epoch, before.instance, after.instance, how, last_seen, after.began, after.recovered
    )


def _how(before: Owner, after: Owner, lives: Lives) -> str:
    if before.released is not None:
        return HANDED_OVER
    if lives.died.get(before.instance, after.began + _SLACK + 1) <= after.began + _SLACK:
        return CRASH
    # What an earlier owner wrote down for the next is found by later ones, too: it speaks only of owners of older
    # releases, which put on record neither that they took over nor that they handed over.
    if after.handed_over and not before.announced:
        return HANDED_OVER
    alive = lives.heard.get(before.instance, 0) > after.began
    if not alive and lives.record_end < after.began + _MISSED_AFTER:
        return UNKNOWN
    # An owner that hands over records it; owners of older releases did not.
    return LAPSED if after.announced or before.instance == after.instance else HANDED_OVER
