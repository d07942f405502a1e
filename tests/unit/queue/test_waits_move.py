"""What waits for a retry, or for its time, waits as long with the next owner, and is what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.common.clock import epoch_ms
from services.common.message import columns
from services.common.message.facts import Facts
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2 import PublishBatch, QueueMessages
from tests.support.queue_house import PROPERTIES, House, RawLink
from tests.unit.queue.test_hand_over import another_owner

FACTS = Facts("/", "", "key", "amqp-0-9", persistent=True)
WAIT = 1500
RETRY = {"delayed_retry_type": "failed", "delayed_retry_min": WAIT}


async def failed(house: House, queue_id: int, *, persistent: bool) -> tuple[RawLink, int]:
    """A message came back; gives when, at most."""
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=persistent)
    await link.attach(queue_id, messages=1)
    await link.until(lambda: link.uids)
    came_back = epoch_ms()
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
    await link.ready(queue_id, 1)
    return link, came_back


@pytest.mark.parametrize(
    ("persistent", "dies", "durable"),
    [(True, True, True), (True, False, True), (False, False, True), (True, False, False)],
)
async def test_a_retry(
    house: House, monkeypatch: pytest.MonkeyPatch, *, persistent: bool, dies: bool, durable: bool
) -> None:
    """Over two owners: it comes when it would have come, as redelivered, and leaves nothing in the journal."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=durable, **RETRY)
    link, came_back = await failed(house, queue_id, persistent=persistent)
    for origin in (1001, 1002):
        await asyncio.sleep(0.1)  # for the journal
        await link.close()
        await another_owner(house)
        link = await house.link(origin=origin)
        assert await link.ready(queue_id, 1) == 1
    await link.attach(queue_id)
    await link.until(lambda: link.bodies)
    assert epoch_ms() >= came_back + WAIT
    assert (link.bodies, link.runs[0].redelivered) == ([b"1"], True)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)


async def test_a_policy_that_is_no_more(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next owner has no use for is not kept in the journal."""
    queue_id = await house.declare("q", durable=True, **RETRY)
    link, _ = await failed(house, queue_id, persistent=True)
    await asyncio.sleep(0.1)
    await link.close()
    registry = house.queues["queue-1"]._host.registry
    options = type(registry).options
    monkeypatch.setattr(type(registry), "options", lambda self, each: replace(options(self, each), retry="disabled"))
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: link.bodies)
    live = house.store._engine._live
    await link.until(lambda: len(live.batches) == 1)


async def publish(link: RawLink, queue_id: int, bodies: list[bytes], times: Sequence[int | None]) -> None:
    """One batch of messages that may not be delivered before these times."""
    batch = PublishBatch.FromString(link.batch(queue_id, bodies, time_ms=epoch_ms()))
    batch.ClearField("runs")
    columns.put(batch, [FACTS._replace(not_before=each) for each in times], [PROPERTIES] * len(bodies))
    batch.queues.append(QueueMessages(queue_id=queue_id, count=len(bodies)))
    await link.send(publishes=[batch.SerializeToString()])
    await link.until(lambda: batch.sequence in link.done())


@pytest.mark.parametrize("dies", [True, False])
async def test_due_without_an_owner(house: House, monkeypatch: pytest.MonkeyPatch, *, dies: bool) -> None:
    """Nobody has had it, though what came behind it was delivered; what was due before was somebody's."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True, table={"holdOnPublishEnabled": True})
    link, now = await house.link(), epoch_ms()
    await link.attach(queue_id)
    await publish(link, queue_id, [b"soon", b"due", b"now"], [now + 100, now + 2500, None])
    await link.until(lambda: len(link.bodies) == 2)
    await asyncio.sleep(0.1)
    await link.close()
    await house.queues.pop("queue-1").stop()
    await asyncio.sleep(max(0, now + 2600 - epoch_ms()) / 1000)
    await house.start_queue("queue-1")
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 3)
    told = [run.redelivered for run in link.runs for _ in range(run.count)]
    assert dict(zip(link.bodies, told, strict=True)) == {b"soon": True, b"due": False, b"now": True}
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)
