"""When messages of one batch were received, where some of them have waited."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clients.outbound import Attempt, encode
from services.common.clock import epoch_ms
from services.queue.machine.times import put_right
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from tests.support import messages as messages_module
from tests.support.messages import messages
from tests.support.queue_house import House

FIRST = 1000 << 39
TTL = 60_000


def attempt(
    queue_id: int, uid: int, time_ms: int, ttl_ms: int = TTL, *, resent: bool = False, persistent: bool = True
) -> Attempt:
    its = messages([b"b"], (queue_id,), FIRST + uid, persistent=persistent, ttl_ms=ttl_ms)
    return messages_module.attempt(its, time_ms, resent=resent)


async def expiries(house: House, name: str, queue_ids: list[int]) -> list[list[int]]:
    queues = house.queues[name]._host.registry.queues
    return [[entry.expires for entry in queues[queue_id].entries()] for queue_id in queue_ids]


async def test_a_fresh_message_in_a_batch_with_one_that_has_waited(house: House) -> None:
    """Each lives as long as it says since it was received, with the next owner too."""
    waited, fresh = await house.declare("waited", durable=True), await house.declare("fresh", durable=True)
    now = epoch_ms()
    batch = [attempt(waited, 2, now - 30_000, resent=True), attempt(fresh, 3, now, 20_000)]
    link = await house.link()
    await link.send(publishes=[encode(batch, 1, 0)])
    await link.until(link.done)
    expected = [[now + 30_000], [now + 20_000]]
    assert await expiries(house, "queue-1", [waited, fresh]) == expected
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")
    assert await expiries(house, "queue-2", [waited, fresh]) == expected


async def test_times_in_the_journal(house: House) -> None:
    """An owner that finds no more than the content, since the one before died, reads the time of each run from it."""
    waited, fresh = await house.declare("waited", durable=True), await house.declare("fresh", durable=True)
    now = epoch_ms()
    batch = [
        attempt(fresh, 1, now, persistent=False),
        attempt(waited, 2, now - 30_000, resent=True),
        attempt(fresh, 3, now, 20_000),
    ]
    link = await house.link()
    await link.send(publishes=[encode(batch, 1, 0)])
    await link.until(link.done)
    partitions = house.queues["queue-1"]._partitions
    for partition in list(partitions._host.registry.partitions.values()):
        number, epoch = partition.number, partition.epoch
        partitions._lose(partition)
        partitions._gain({number: epoch})
    await link.until(lambda: len(partitions._host.registry.queues) == 2)
    assert await expiries(house, "queue-1", [waited, fresh]) == [[now + 30_000], [now + 20_000]]


def test_a_batch_of_one_time() -> None:
    """What was received at about the same time is said once."""
    batch = PublishBatch.FromString(encode([attempt(1, 1, 100_000), attempt(2, 2, 100_010)], 1, 0))
    assert (batch.time_ms, list(batch.times_ms)) == (100_000, [])


@pytest.mark.parametrize(
    "fields",
    [
        {"uids": [1, 2, 3], "resent": [0]},
        {"runs": [PublishRun(count=1, resent=True), PublishRun(count=1), PublishRun(count=1)]},
    ],
)
def test_messages_whose_time_is_astray(fields: dict[str, Any]) -> None:
    """A message that comes for the first time arrived now, with any time in it; one sent again is as old as it says."""
    for given, right in (
        ([100_000, 100_000, 199_999], [100_000, 200_000, 199_999]),
        ([], [100_000, 200_000, 200_000]),
        ([100_000, 199_998, 199_999], [100_000, 199_998, 199_999]),
    ):
        batch = PublishBatch(time_ms=100_000, times_ms=given, **fields)
        raw = put_right(batch.SerializeToString(), batch, list(batch.bodies), 200_000)
        assert list(batch.times_ms) == right
        assert PublishBatch.FromString(raw) == batch
