"""What a queue process says of its partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from services.queue.partitions.loads import Loads
from services.queue.partitions.partition import PartitionState


class _Process:
    """Partitions whose traffic and time the test holds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.partitions: dict[int, Any] = {}
        self.loads = Loads(self.partitions, lambda: self.now)

    def gain(self, number: int) -> Any:
        partition = SimpleNamespace(state=PartitionState.SERVING, context=SimpleNamespace(traffic=0), queues={})
        self.partitions[number] = partition
        return partition

    def beat(self, times: int = 1, **traffic: int) -> dict[str, tuple[float, int]]:
        """Half seconds pass, with so many messages in each."""
        told = {}
        for _ in range(times):
            self.now += 0.5
            for number, count in traffic.items():
                self.partitions[int(number[1:])].context.traffic += count
            told |= {load.lease: (load.rate, load.messages) for load in self.loads.changed()}
        return told


def test_rates_are_averaged() -> None:
    """A steady thousand a second is told as that, and when it ends the rate goes down to nothing, which is told too."""
    process = _Process()
    process.gain(3)
    steady = process.beat(100, p3=500)
    assert 950 <= steady["partition/3"][0] <= 1000
    silent = process.beat(200)
    assert silent["partition/3"] == (0.0, 0)
    assert process.beat(100) == {}


def test_newcomers_are_measured_first() -> None:
    """Of a partition that has just come nothing is told: the store knows what it did where it was."""
    process = _Process()
    process.gain(0)
    assert process.beat(9, p0=500) == {}
    assert process.beat(2, p0=500)


def test_ready_messages_are_told_again() -> None:
    """What waits is told when it changes, and from time to time to a store that may have forgotten."""
    process = _Process()
    partition = process.gain(0)
    process.beat(12)
    partition.queues[1] = SimpleNamespace(ready_count=7)
    assert process.beat(1) == {"partition/0": (0.0, 7)}
    assert process.beat(10) == {}
    assert process.beat(12) == {"partition/0": (0.0, 7)}
