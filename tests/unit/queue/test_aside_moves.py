"""What waits for its time does so with the next owner too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from services.common.clock import epoch_ms
from services.common.message.columns import put
from services.common.message.facts import Facts
from services.queue.machine.entry import Entry
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.machine.options import read_options
from services.queue.partitions.recovery import Contents, Recovery
from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import EntryBatch, EntryColumns, RecoveredBatch
from tests.support.queue_house import House

FACTS = Facts("/", "", "key", "amqp-0-9")
SOON = 700
LATER = 600_000
HOLDS = {"holdOnPublishEnabled": True}


@pytest.mark.parametrize("durable", [False, True])
async def test_after_a_move(house: House, *, durable: bool) -> None:
    """Transient and persistent messages, until their time has come; one whose time has not stays."""
    queue_id = await house.declare("q", durable=durable, table=HOLDS)
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


def read_back(table: Mapping[str, object], *times: int | None) -> list[Entry]:
    """At time `LATER`, messages of one batch that may not be delivered before these; the last one was delivered."""
    options = read_options(1, "/", "q", 0, table)
    recovery = Recovery(MemoryAccount(), 2, LATER, {1: options}.get, lambda *_: None)
    columns = PublishBatch(uids=range((5 << 39) + 1, (5 << 39) + 1 + len(times)), bodies=[b""] * len(times))
    put(columns, [FACTS._replace(not_before=each) for each in times], [b""] * len(times))
    entries = EntryColumns(queue_id=[1], first=[0], count=[len(times)], position=[0])
    batch = RecoveredBatch(columns=columns.SerializeToString())
    its = EntryBatch(id=1, count=len(times), entries=entries.SerializeToString())
    batch.entries.CopyFrom(its)
    batch.delivered_upto = len(times)
    contents = Contents(Interned())
    contents.take(batch)
    recovery.add(batch, contents)
    return recovery.in_order()[1]


def test_after_a_kill() -> None:
    """The journal has the time as a fact of the message."""
    [entry] = read_back(HOLDS, LATER)
    assert entry.message.facts.not_before == LATER


@pytest.mark.parametrize("table", [HOLDS, {}])
def test_what_nobody_had(table: Mapping[str, object]) -> None:
    """What waits for its time was not delivered, though what came behind it was; where nothing waits it was."""
    waits = 0 if table else 1
    entries = read_back(table, LATER + 9000, LATER - 1, LATER + 5000, None)
    assert [entry.attempts for entry in entries] == [waits, 1, waits, 1]
