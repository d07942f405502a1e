"""What waits for its time does so with the next owner too."""

from __future__ import annotations

import pytest

from services.common.clock import epoch_ms
from services.common.message.columns import put
from services.common.message.facts import Facts
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.partitions.recovery import Recovery
from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import EntryBatch, EntryColumns, RecoveredBatch
from tests.support.queue_house import House

FACTS = Facts("/", "", "key", "amqp-0-9")
SOON = 700
LATER = 600_000


@pytest.mark.parametrize("durable", [False, True])
async def test_after_a_move(house: House, *, durable: bool) -> None:
    """Transient and persistent messages, until their time has come; one whose time has not stays."""
    queue_id = await house.declare("q", durable=durable, table={"holdOnPublishEnabled": True})
    link, now = await house.link(), epoch_ms()
    await link.publish_facts(queue_id, [b"soon"], FACTS._replace(not_before=now + SOON, persistent=durable))
    await link.publish_facts(queue_id, [b"later"], FACTS._replace(not_before=now + LATER))
    await link.publish_facts(queue_id, [b"now"], FACTS)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    link = await house.link(origin=1001)
    assert await link.ready(queue_id, 1) == 3
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 2)
    assert sorted(link.bodies) == [b"now", b"soon"]
    assert epoch_ms() >= now + SOON
    assert await link.ready(queue_id, 2) == 1


def test_after_a_kill() -> None:
    """The journal has the time as a fact of the message."""
    recovery = Recovery(MemoryAccount(), Interned(), 2, lambda _: None, lambda *_: None)
    columns = PublishBatch(uids=[(5 << 39) + 1], bodies=[b""])
    put(columns, [FACTS._replace(not_before=LATER)], [b""])
    batch = RecoveredBatch(columns=columns.SerializeToString())
    entries = EntryColumns(queue_id=[1], first=[0], count=[1], position=[0])
    batch.entries.CopyFrom(EntryBatch(id=1, count=1, entries=entries.SerializeToString()))
    recovery.add(batch)
    [entry] = recovery.in_order()[1]
    assert entry.message.facts.not_before == LATER
