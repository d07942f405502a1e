"""Requests that wait for a partition on its way, of links that do not wait as long."""

from __future__ import annotations

import pytest

from services.queue.links import link as link_module
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House
from tests.unit.queue.test_sent_again import queues_of_one_partition


@pytest.mark.parametrize("settled", [False, True])
async def test_a_get_of_a_link_that_is_gone_takes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, *, settled: bool
) -> None:
    """Its gateway is dead by the time the partition comes: the message stays, and goes to another consumer."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0.01)
    (queue_id,) = await queues_of_one_partition(house, 1)
    gone, other = await house.link(origin=1001), await house.link(origin=1002)
    await other.publish(queue_id, [b"1"], persistent=True)
    host = house.queues["queue-1"]._host
    partition = host.registry.partition_of(queue_id)
    assert partition
    queue = host.registry.queues.pop(queue_id)
    partition.state = PartitionState.RECOVERING
    await gone.send(requests=[pb.QueueRequest(id=1, get=pb.GetRequest(queue_id=queue_id, settled=settled))])
    await gone.until(lambda: partition.waiting)
    await gone.close()
    await other.until(lambda: 1001 not in {link.origin for link in host.links} | host.departed.keys())
    host.registry.queues[queue_id] = queue
    partition.state = PartitionState.SERVING
    partition.replay()
    assert await other.ready(queue_id, 1) == 1


async def test_messages_for_sealed_queues_of_one_partition(house: House) -> None:
    """Each waits for its own queue: behind a batch for both, what comes for the first to be free comes behind it."""
    one, other, asked = await queues_of_one_partition(house, 3)
    registry = house.queues["queue-1"]._host.registry
    for queue_id in (one, other):
        registry.seal(registry.queues[queue_id])
    link = await house.link()
    await link.send(publishes=[link.batch([one, other], [b"1"])])
    await link.ready(asked, 1)  # carried out behind the batch
    registry.unseal(other)
    await link.publish(other, [b"2"])
    registry.unseal(one)
    await link.until(lambda: len(link.done()) == 2)
    for queue_id in (one, other):
        found = [entry.message.body for entry in registry.queues[queue_id].entries()]
        assert found == ([b"1"] if queue_id == one else [b"1", b"2"])
