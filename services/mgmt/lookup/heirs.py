"""Who had a partition since the owner that is known to have had a message last, and the gaps that can hide that one of
them has it. Pure; the same rule as that of the audit (`spark.terms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.common.trace import Gap
from services.mgmt.lookup.blame import SLACK_US, Follower, Window, covers

_GATEWAY = "gateway"


class Heirs(NamedTuple):
    """By epoch: all that are known, of whom some told of the partition only, and those who took it over since `epoch`.

    One that took it over has told then, at once, of everything in it that it has.
    """

    epoch: int
    known: Sequence[Follower]
    taken: Sequence[Follower]
    all_known: bool  # else others may have told of it, too

    def begin_after(self, gap: Gap) -> bool:
        """Whether the gap had begun before the first of them came, if one did."""
        return not self.known or gap.since_us is None or gap.since_us <= self.known[0].time_us + SLACK_US

    def perhaps_found(self, gap: Gap) -> bool:
        """Whether it can have what one of them said that it has; where one has not told of its takeover, any can."""
        if any(gap.instance == one.instance and covers(gap, _takeover(one)) for one in self.taken):
            return True
        return not self._all_told() and gap.service != _GATEWAY

    @property
    def some_untold(self) -> bool:
        """Whether one told of the partition, for all that is known, and not of its takeover. An epoch without a word
        is none where nothing is missing: who claimed it had nothing to say.
        """
        return not self.all_known or len(self.known) > len({one.epoch for one in self.taken})

    def _all_told(self) -> bool:
        return self.all_known and self._all_taken()

    def _all_taken(self) -> bool:
        return not self.known or len(self.taken) == self.known[-1].epoch - self.epoch


def _takeover(owner: Follower) -> Window:
    return Window(owner.time_us - SLACK_US, owner.time_us)


def heirs(epoch: int, taken: Sequence[Follower], told: Sequence[Follower] | None) -> Heirs:
    """After an epoch; None `told` of it, as far as that is known, besides those who took it over."""
    known = {one.epoch: one for one in (*(told or ()), *taken)}
    return Heirs(epoch, [known[each] for each in sorted(known)], taken, told is not None)
