"""The step from a backup to the next generation: no number that was given out after the backup is given out again.

Processes that live on from before the restore go on with the numbers that they were given: an epoch, an origin,
versions. The store tells writers apart by these alone. So each of them goes up at a restore, by more than was given out
since the backup, and by a random part: one backup may be restored twice, on machines that know nothing of each other.

Their range is narrow. A router's versions are `epoch << 40` in 64 bits; analyses order events by the low 17 bits of an
epoch, and ignore the bits from the 18th on, so an epoch steps by a multiple of 2^18 and a little. Origins have 24 bits,
and incarnations 31: versions of records are `incarnation << 32` in signed 64.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from services.common.errors import ResourceError
from services.store.origins import LAST_ORIGIN
from services.store.provider import Changes, LeaseRow

_MONTH = 30 * 24 * 3600.0  # seconds
_EPOCHS = 1 << 18  # changes of one lease's holder in a month, at most
_EPOCH_CHANCE = 1 << 11
_LAST_EPOCH = (1 << 24) - _EPOCHS
_ORIGINS = 1 << 17  # starts of processes, at most, on top of …
_SECONDS_PER_ORIGIN = 8.0  # … one in so many seconds
_ORIGIN_CHANCE = 1 << 16
_STARTS = 1 << 16  # of the store, at most, besides one a second
_START_CHANCE = 1 << 12
_LAST_INCARNATION = (1 << 31) - 1 - _STARTS


@dataclass(frozen=True, slots=True)
class Given:
    """Numbers that a store has given out and must not give out again, as far as they are known."""

    generation: int = 1
    origin: int = 0
    incarnation: int = 0
    epochs: Mapping[str, int] = field(default_factory=dict)

    def and_of(self, other: Given) -> Given:
        """The numbers that either has given out."""
        names = {*self.epochs, *other.epochs}
        return Given(
            max(self.generation, other.generation),
            max(self.origin, other.origin),
            max(self.incarnation, other.incarnation),
            {name: max(self.epochs.get(name, 0), other.epochs.get(name, 0)) for name in names},
        )


def given_of(pieces: Iterable[Changes], generation: int) -> Given:
    """The numbers given out according to a snapshot."""
    given = Given(generation)
    for changes in pieces:
        epochs = {row.name: row.epoch for row in changes.leases.values()}
        given = given.and_of(Given(generation, changes.origin, changes.incarnation, epochs))
    return given


class Generation:
    """Where the next generation begins."""

    def __init__(
        self, given: Given, leases: Iterable[str], seconds: float, chance: Callable[[int], int] = secrets.randbelow
    ) -> None:
        """`seconds` have passed since the backup; `leases` are all that may be held, in the backup or not.

        Raises ResourceError when numbers would run out.
        """
        self.number = given.generation + 1
        self._epochs = given.epochs
        self._leases = leases
        self._epoch_step = _EPOCHS * (1 + int(seconds / _MONTH)) + chance(_EPOCH_CHANCE)
        self.origin = given.origin + _ORIGINS + int(seconds / _SECONDS_PER_ORIGIN) + chance(_ORIGIN_CHANCE)
        self.incarnation = given.incarnation + _STARTS + int(seconds) + chance(_START_CHANCE)
        highest = max(given.epochs.values(), default=0) + self._epoch_step
        if highest > _LAST_EPOCH or self.origin > LAST_ORIGIN - _ORIGINS or self.incarnation > _LAST_INCARNATION:
            raise ResourceError(f"generation {given.generation} cannot be followed by another: its numbers run out")

    def leases(self) -> dict[str, LeaseRow]:
        """The rows of all leases in the next generation, without holders."""
        names = {*self._leases, *self._epochs}
        return {name: LeaseRow(name, self._epochs.get(name, 0) + self._epoch_step) for name in names}

    def last(self, running: int) -> Changes:
        """The last commit, behind all pieces, in place of their leases and counters."""
        return Changes(
            at=running, leases=self.leases(), origin=self.origin, incarnation=self.incarnation, running=running
        )


def without_given(changes: Changes) -> Changes:
    """A piece as it is committed: without leases and counters, which come last."""
    changes.leases.clear()
    changes.origin = changes.incarnation = 0
    return changes
