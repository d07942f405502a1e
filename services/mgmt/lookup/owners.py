"""Who had a partition when: as far as the record tells, for one question. What is asked once is remembered, of all
partitions: a message may be in very many, and that takes no longer than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial

from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.hours import HOUR_US, hour_of, windows
from services.mgmt.lookup.search import Search, Telling

_WINDOW = 24  # hours in which is looked together who told of a partition; takeovers are on record besides
_SLACK_US = HOUR_US  # by which clocks may differ, and a row of a batch be older than its consequences


def _never() -> bool:
    return False


class Owners:
    """Every call raises what `Database.select` does. Once it `is_late`, nothing more is read of who told."""

    def __init__(self, search: Search, is_late: Callable[[], bool] = _never) -> None:
        self._is_late = is_late
        self._asked: set[int] = set()
        self._hours = cache(search.hours)
        self._told_since = cache(search.told_since)
        self._told = cache(search.told)
        self._handed_over = cache(search.handed_over)
        self._taken_over = cache(search.taken_over)
        self._missed = cache(search.missed)

    def of(self, partition: int, since_us: int, until_us: int) -> list[Follower]:
        """By epoch: those that took it over, and those that told of it in the hours between the two times, since when
        they are known to have had it. Of the last one, since when another may have followed. Nobody is
        known where it is late.
        """
        first, last = hour_of(since_us - _SLACK_US), hour_of(until_us)
        told = self._by_windows(self._told, first, last)
        if told is None:
            return []
        found = {owner.epoch: owner for owner in _first_words(told, partition)}
        found |= {owner.epoch: owner for owner in self._taken_over().get(partition, [])}
        owners = [found[epoch] for epoch in sorted(found)]
        if owners:
            handed = self._handed_over(first - _WINDOW, last).get((partition, owners[-1].epoch))
            left = [*([] if handed is None else [handed]), *self._died(owners[-1], told)]
            owners[-1] = owners[-1]._replace(left_us=min(left, default=None))
        return owners

    def since(self, partition: int, epoch: int, since_us: int, until_us: int) -> list[Follower] | None:
        """Those of later epochs that told of the partition between the two times; None where it is late.

        That is read of one partition alone, which takes a part of the time; where another is asked for, of all.
        """
        self._asked.add(partition)
        alone = partial(self._told_since, partition, epoch)
        ask = alone if self._asked == {partition} else self._told
        told = self._by_windows(ask, hour_of(since_us - _SLACK_US), hour_of(until_us))
        return None if told is None else [one for one in _first_words(told, partition) if one.epoch > epoch]

    def takes_over(self) -> bool:
        """Whether takeovers are on record at all: older releases did not record them."""
        return any(self._taken_over().values())

    def _by_windows(self, ask: Callable[[int, int], list[Telling]], first: int, last: int) -> list[Telling] | None:
        told: list[Telling] = []
        # Of those on record: of what no row tells when it began, the first may be before all time.
        for window in windows(self._hours(first, last), _WINDOW):
            if self._is_late():
                return None
            told += ask(window[-1], window[0]) if window else ask(last, last)
        return told

    def _died(self, owner: Follower, told: list[Telling]) -> list[int]:
        """Since when it was missed, if it was, and not heard again."""
        heard = max((one.last_us for one in told if one.instance == owner.instance), default=0)
        gaps = self._missed(owner.instance, hour_of(owner.time_us))
        times = (gap.time_us if gap.since_us is None else gap.since_us for gap in gaps if gap.time_us > heard)
        return [max(time_us, owner.time_us) for time_us in times]


def _first_words(told: Iterable[Telling], partition: int) -> list[Follower]:
    """Of a partition, by epoch, each with when it told first."""
    tellers = sorted(Follower(one.first_us, one.epoch, one.instance) for one in told if one.partition == partition)
    found = {one.epoch: one for one in tellers[::-1]}
    return [found[epoch] for epoch in sorted(found)]
