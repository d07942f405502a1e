"""What a gateway has said of partitions, and which of their queues have been used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from services.queue.links.peer_reports import PeerReports
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb

QUEUE, EPOCH = 7, 3
USED = pb.Told(partition=0, epoch=EPOCH, used=[QUEUE, 8])


class House:
    """One partition with one queue."""

    def __init__(self, state: PartitionState = PartitionState.SERVING) -> None:
        self.queue = Mock()
        self.partition: Any = SimpleNamespace(number=0, epoch=EPOCH, state=state, queues={QUEUE: self.queue})
        self.registry: Any = SimpleNamespace(partitions={0: self.partition})
        self.told = PeerReports(self.registry)

    @property
    def heard(self) -> list[Any]:
        return self.queue.mock_calls


def test_at_once() -> None:
    """Of a partition that is served its queues hear at once, those that there are."""
    house = House()
    assert house.told.hear([USED], now=5) == {0}
    assert house.heard == [call.had_consumers(5)]
    assert house.told.has(house.partition)


def test_when_it_has_been_read_back() -> None:
    """What is said before that is kept until the partition is served, and passed on once."""
    house = House(PartitionState.RECOVERING)
    house.told.hear([USED], now=5)
    assert house.heard == []
    for _ in range(2):
        house.told.pass_on(house.partition, now=6)
    assert house.heard == [call.had_consumers(6)]


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_to_another_owner(epoch: int) -> None:
    """What was said to the owner of another epoch is not meant."""
    house = House()
    assert house.told.hear([pb.Told(partition=0, epoch=epoch, used=[QUEUE])], now=5) == set()
    assert house.heard == []
    assert not house.told.has(house.partition)


def test_before_the_partition_is_here() -> None:
    """A gateway that asked too early reports everything again."""
    house = House()
    house.told.begin()
    house.told.not_heard(0)
    assert house.told.hear([USED], now=5) == set()
    assert house.heard == []
    house.told.begin()
    house.told.hear([USED], now=6)
    assert house.heard == [call.had_consumers(6)]
