from __future__ import annotations

import pytest

from services.common.partition import partition_of
from services.common.topology.slots import SlotName

PARTITIONS = 64


@pytest.mark.parametrize(
    ("virtual_host", "queue", "partition"), [("/", "orders", 30), ("/", "q", 37), ("shop", "orders", 50)]
)
def test_first_slots_stay_where_queues_have_been(virtual_host: str, queue: str, partition: int) -> None:
    """What earlier releases wrote for a queue is found by its first slot."""
    assert partition_of(SlotName(virtual_host, queue), PARTITIONS) == partition


def test_slots_of_a_queue_are_spread() -> None:
    """As many slots as there are partitions have one each."""
    found = {partition_of(SlotName("/", "orders", slot), PARTITIONS) for slot in range(PARTITIONS)}
    assert found == set(range(PARTITIONS))
