"""What processes have counted since they began: asked of all of them while there are requests, at most five
seconds old.

A counter is its process's own, so it is known by process: what one has counted that is gone is in no sum any more, and
what was reset is taken off of each by itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from services.common.config import Settings
from services.common.metrics.each import OTHERS
from services.mgmt.metrics.gather import ProcessMetrics, samples_of
from services.mgmt.tree.counted import WANTED, Addend, Sum
from services.mgmt.tree.recent import Followed
from services.rpc import metrics_pb2 as pb

_ALL: Final = ""

Labels = tuple[str, ...]
ByProcess = Mapping[str, int]
Counted = Mapping[str, ByProcess]
"""By statistic."""
_Taken = defaultdict[str, defaultdict[Labels, defaultdict[str, float]]]
_Samples = Mapping[str, Mapping[Labels, Mapping[str, float]]]
"""By why, or all; then by whose they are; then by process."""
_NONE: Final[Mapping[Labels, Mapping[str, float]]] = {}


class Gather(Protocol):
    """As services.mgmt.metrics.gather.Gathering does."""

    def __call__(self, *, per_object: bool, names: Collection[str]) -> Awaitable[list[ProcessMetrics]]:
        """What each process says of those instruments."""


class Counters(Followed):
    """Keeps what was told last."""

    def __init__(self, gather: Gather, settings: Settings) -> None:
        super().__init__("counters of processes")
        self._gather = gather
        self._apart = settings.metrics_queues or settings.metrics_exchanges or settings.metrics_connections
        self._last: Mapping[str, _Samples] = {}

    async def fresh(self) -> None:
        """Returns when they are of the last five seconds. Those of thousands of objects take long to be told."""
        await (self.followed() if self._apart else self.recent())

    async def fresh_apart(self) -> None:
        """The same of those of single objects: nobody is asked for what the settings do not want counted."""
        if self._apart:
            await self.fresh()

    async def _ask(self) -> None:
        taken = defaultdict[str, _Taken](_taken)
        for told in await self._gather(per_object=self._apart, names=WANTED):
            for family in told.families:
                if family.name in WANTED:
                    _take(taken[family.name], told.process, family)
                    await asyncio.sleep(0)  # of single objects there are thousands, in portions of some hundred
        self._last = dict(taken)

    def counted(self, sums: Mapping[str, Sum], *whose: str) -> dict[str, ByProcess]:
        """Those statistics that somebody counts; the others are not known, which is not the same as none."""
        found = ((name, self.of(its, *whose)) for name, its in sums.items())
        return {name: by_process for name, by_process in found if by_process is not None}

    def of(self, its: Sum, *whose: str) -> ByProcess | None:
        """One of them; None where nobody says it."""
        return self.column(its, [whose])[0]

    def knows(self, its: Sum) -> bool:
        """Whether somebody counts it of anything."""
        return any(each.instrument.prometheus in self._last for each in its)

    def column(self, its: Sum, whose: Iterable[Labels]) -> list[ByProcess | None]:
        """The same of each of many."""
        said = [_Said(samples, each) for each in its if (samples := self._last.get(each.instrument.prometheus))]
        return [_together(said, each) for each in whose]


class _Said:
    """Of one addend: as each of thousands is looked up."""

    def __init__(self, samples: _Samples, its: Addend) -> None:
        self.samples, self.times = samples.get(its.why or _ALL, _NONE), its.times
        self._known = samples.get(_ALL, _NONE)
        self._lacks_some = (OTHERS,) * WANTED[its.instrument.prometheus] in self._known

    def knows(self, whose: Labels) -> bool:
        """What is of too many to be told one by one is in a sum of all of them, and nobody knows how much."""
        return not self._lacks_some or whose in self._known


def _together(said: Sequence[_Said], whose: Labels) -> ByProcess | None:
    known, found = False, dict[str, int]()
    for each in said:
        known = known or each.knows(whose)
        if by_process := each.samples.get(whose):
            for process, value in by_process.items():
                found[process] = found.get(process, 0) + int(value * each.times)
    return found if known else None


def _taken() -> _Taken:
    return defaultdict(lambda: defaultdict(lambda: defaultdict(float)))


def _take(samples: _Taken, process: str, family: pb.Family) -> None:
    for labels, value in samples_of(family):
        whose, whys = labels[: WANTED[family.name]], labels[WANTED[family.name] :]
        for why in (_ALL, *whys):
            samples[why][whose][process] += value


def grown(counted: Counted, since: Counted) -> dict[str, int]:
    """By statistic: all together, without what each process had counted by the last reset."""
    return {name: sum_of(by_process, since.get(name, {})) for name, by_process in counted.items()}


def sum_of(by_process: ByProcess, since: ByProcess) -> int:
    """The same of one."""
    if not since:  # as of most, of thousands
        return sum(by_process.values())
    return sum(max(value - since.get(process, 0), 0) for process, value in by_process.items())


def as_kept(counted: Counted) -> dict[str, dict[str, int]]:
    """For a record, to be taken off from then on."""
    return {name: {process: value for process, value in its.items() if value} for name, its in counted.items()}
