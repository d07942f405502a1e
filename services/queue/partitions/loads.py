"""The load of each partition of this process: what has changed is told the store with every renewal of leases."""

from __future__ import annotations

import math
from collections.abc import Mapping

from services.common.clock import Clock
from services.common.partition import lease_name
from services.queue.partitions.partition import Partition, PartitionState
from services.rpc.store_pb2 import LeaseLoad

_MEMORY = 5.0  # seconds over which a rate is averaged
_NOTHING = 0.5  # messages a second
_AGAIN = 10.0  # seconds after which a load other than zero is told again: a restarted store has forgotten it


class _Meter:
    """Measures one partition in one term."""

    __slots__ = ("partition", "rate", "since", "told", "told_at", "traffic")

    def __init__(self, partition: Partition, now: float) -> None:
        self.partition = partition
        self.since = now
        self.traffic = partition.context.traffic
        self.rate = 0.0
        self.told = (-1.0, -1)
        self.told_at = 0.0

    def measure(self, seconds: float) -> None:
        traffic = self.partition.context.traffic
        passed, self.traffic = traffic - self.traffic, traffic
        self.rate += (passed / seconds - self.rate) * (1 - math.exp(-seconds / _MEMORY))

    def is_news(self, now: float) -> bool:
        """Whether the store has to be told the load; `told` is what it is told then."""
        load = self._load()
        if load == self.told and (not any(load) or now - self.told_at < _AGAIN):
            return False
        self.told, self.told_at = load, now
        return True

    def _load(self) -> tuple[float, int]:
        rate = self.rate if self.rate > _NOTHING else 0.0
        return float(f"{rate:.2g}"), sum(queue.ready_count for queue in self.partition.queues.values())


class Loads:
    """The loads of the partitions that are served; `clock` is monotonic."""

    def __init__(self, partitions: Mapping[int, Partition], clock: Clock) -> None:
        self._partitions = partitions
        self._clock = clock
        self._meters: dict[int, _Meter] = {}
        self._measured = clock()

    def changed(self) -> list[LeaseLoad]:
        """Measures, and gives the loads that differ from what the store was told before.

        A partition that has just come is left out: what its former owner told holds until it has been measured here.
        """
        now = self._clock()
        seconds, self._measured = now - self._measured, now
        serving = {number: one for number, one in self._partitions.items() if one.state is PartitionState.SERVING}
        self._meters = {
            number: meter if (meter := self._meters.get(number)) and meter.partition is one else _Meter(one, now)
            for number, one in serving.items()
        }
        changed = []
        for number, meter in self._meters.items():
            if seconds > 0 and meter.since < now:
                meter.measure(seconds)
            if now - meter.since >= _MEMORY and meter.is_news(now):
                rate, messages = meter.told
                changed.append(LeaseLoad(lease=lease_name(number), rate=rate, messages=messages))
        return changed
