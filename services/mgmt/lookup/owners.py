"""Who had a partition when: as far as the record tells, for one question. What is asked once is remembered, of all
partitions: a message may be in very many, and that takes no longer than one.
"""

from __future__ import annotations

from functools import cache

from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.hours import HOUR_US, hour_of
from services.mgmt.lookup.search import Search, Telling

_MOST_HOURS = 24  # in which is looked who told of a partition; takeovers are on record besides
_SLACK_US = HOUR_US  # by which clocks may differ, and a row of a batch be older than its consequences


class Owners:
    """Every call raises what `Database.select` does."""

    def __init__(self, search: Search) -> None:
        self._told = cache(search.told)
        self._handed_over = cache(search.handed_over)
        self._taken_over = cache(search.taken_over)
        self._missed = cache(search.missed)

    def of(self, partition: int, since_us: int, until_us: int) -> list[Follower]:
        """By epoch: those that took it over, and those that told of it in the hours between the two times, since when
        they are known to have had it. Of the last one, since when another may have followed.
        """
        first, last = hour_of(since_us - _SLACK_US), hour_of(until_us)
        told = self._told(first, min(last, first + _MOST_HOURS))
        tellers = sorted(Follower(one.first_us, one.epoch, one.instance) for one in told if one.partition == partition)
        found = {owner.epoch: owner for owner in tellers[::-1]}
        found |= {owner.epoch: owner for owner in self._taken_over().get(partition, [])}
        owners = [found[epoch] for epoch in sorted(found)]
        if owners:
            handed = self._handed_over(first - _MOST_HOURS, last).get((partition, owners[-1].epoch))
            left = [*([] if handed is None else [handed]), *self._died(owners[-1], told)]
            owners[-1] = owners[-1]._replace(left_us=min(left, default=None))
        return owners

    def _died(self, owner: Follower, told: list[Telling]) -> list[int]:
        """Since when it was missed, if it was, and not heard again."""
        heard = max((one.last_us for one in told if one.instance == owner.instance), default=0)
        gaps = self._missed(owner.instance, hour_of(owner.time_us))
        times = (gap.time_us if gap.since_us is None else gap.since_us for gap in gaps if gap.time_us > heard)
        return [max(time_us, owner.time_us) for time_us in times]
