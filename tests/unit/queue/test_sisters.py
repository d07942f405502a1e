"""Queue processes that start together share all partitions from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.queue.partitions.sisters import missing, sisters_of
from services.queue.service import Service
from tests.support.queue_house import House


def test_sisters_are_known_by_name() -> None:
    """`hopline up` numbers its queue processes; one with another name expects no others."""
    assert sisters_of("queue-2", 3) == ["queue-1", "queue-3"]
    assert sisters_of("queue-1", 1) == []
    assert sisters_of("queue-4f0c6ab1", 2) == []


def test_processes_that_are_missing() -> None:
    """A sister process is there when any run of it is; queue-10 is not queue-1."""
    assert missing(["queue-1", "queue-3"], {"queue-10-aa", "queue-2-bb", "queue-3-cc"}) == {"queue-1"}


def owned(service: Service) -> set[int]:
    return set(service._host.registry.partitions)


@pytest.mark.parametrize("placement", ["fair", "load"])
async def test_a_share_is_left_to_later_processes(tmp_path: Path, placement: str) -> None:
    """The first of two takes its half and is ready; the second one finds the other half, and nothing is moved."""
    house = House(tmp_path, lease_ttl_ms=60_000, queue_processes=2, placement=placement)
    await house.start()
    try:
        half = owned(house.queues["queue-1"])
        assert len(half) == 4
        second = await house.start_queue("queue-2")
        assert owned(second) == set(range(8)) - half
        assert owned(house.queues["queue-1"]) == half
    finally:
        await house.stop()


async def test_a_share_is_not_left_for_long(tmp_path: Path) -> None:
    """A process that is alone after half of a lease's time takes everything, without waiting for a renewal."""
    house = House(tmp_path, lease_ttl_ms=1000, queue_processes=2)
    await house.start()
    try:
        link = await house.link()
        await link.until(lambda: len(owned(house.queues["queue-1"])) == 8)
    finally:
        await house.stop()
