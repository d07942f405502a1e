"""What queue processes, router and store count, beside what went through them."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import OFF
from services.common.metrics.each import CountedQueues
from services.common.metrics.meters import Meters
from services.common.metrics.stages import CountedStages
from services.rpc import ledger_pb2 as ledger
from services.rpc import queue_pb2 as pb
from tests.support.collected import Counts, collect
from tests.support.queue_house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Store (in memory), router and one queue process that counts each queue."""
    built = House(tmp_path, metrics_queues=True)
    await built.start()
    yield built
    await built.stop()


async def told(house: House, name: str = "queue-1", *, per_object: bool = False) -> Counts:
    return (await collect(house.settings.address_of(name), per_object=per_object))[1]


async def test_a_queue_process(house: House) -> None:
    """It tells what it has, what went through it, and how long the journal took; and each queue where that is asked."""
    queue_id = await house.declare("q", durable=True)
    await house.declare("empty")
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2", b"3", b"4", b"5"], persistent=True)
    await link.attach(queue_id, messages=3)
    await link.until(lambda: len(link.uids) == 3)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[:1])])
    await link.ready(queue_id, 1)
    found = await told(house)
    for name, value in {
        ("hopline_messages_enqueued_total",): 5,
        ("hopline_messages_persisted_total",): 5,
        ("hopline_messages_delivered_total",): 3,
        ("hopline_messages_settled_total", "accepted"): 1,
        ("hopline_messages_ready",): 2,
        ("hopline_messages_unsettled",): 2,
        ("hopline_queues",): 2,
        ("hopline_consumers",): 1,
        ("hopline_partitions_held", "serving"): 8,
    }.items():
        assert found[name] == value, name
    assert found["hopline_journal_write_duration_seconds",] >= 1
    assert found["hopline_memory_used_bytes", "messages"] > 5 * 100
    assert not any(name[0].startswith("hopline_queue_") for name in found)
    apart = await told(house, per_object=True)
    assert {name[0]: value for name, value in apart.items() if name[1:3] == ("/", "q")} == {
        "hopline_queue_messages_enqueued_total": 5,
        "hopline_queue_messages_delivered_total": 3,
        "hopline_queue_messages_settled_total": 1,
        "hopline_queue_messages_ready": 2,
        "hopline_queue_messages_unsettled": 2,
        "hopline_queue_memory_bytes": apart["hopline_queue_memory_bytes", "/", "q"],
        "hopline_queue_consumers": 1,
    }


async def test_partitions_that_move(house: House) -> None:
    """What a process has counted stays its own when its partitions go; the next owner has enqueued nothing."""
    queue_id = await house.declare("q", durable=True)
    await (await house.link()).publish(queue_id, [b"1", b"2", b"3"], persistent=True)
    await house.start_queue("queue-2")
    async with asyncio.timeout(60):
        while (second := await told(house, "queue-2")).get(("hopline_partitions_held", "serving")) != 4:
            await asyncio.sleep(0.05)
    first = await told(house)
    assert first["hopline_messages_enqueued_total",] == 3
    assert ("hopline_messages_enqueued_total",) not in second
    assert first["hopline_partitions_handed_over_total",] == second["hopline_partitions_taken_over_total",] == 4


async def test_a_deleted_queue(house: House) -> None:
    """Its own counters go with it, and what it has added to those of all queues stays."""
    queue_id = await house.declare("q")
    await (await house.link()).publish(queue_id, [b"1", b"2"])
    await house.delete("q")
    found = await told(house, per_object=True)
    assert found["hopline_messages_enqueued_total",] == found["hopline_messages_dropped_total", "queue_deleted"] == 2
    assert not any("q" in name for name in found)


async def test_a_queue_that_expires(house: House) -> None:
    """As well, with the messages that expired with it: one of the same name begins at 0."""
    queue_id = await house.declare("q", expires=100)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"])
    await link.until(lambda: queue_id not in house.topology.queues)
    await house.declare("q")
    found = await told(house, per_object=True)
    assert found["hopline_messages_expired_total", "queue_ttl"] == 2
    assert not any(found[name] for name in found if "q" in name)


async def test_what_is_told_of_a_queue_late(house: House) -> None:
    """As of dead letters that were on their way when it was deleted: it has no counters for ever."""
    await house.declare("q")
    await house.delete("q")
    recorder = house.queues["queue-1"]._host.recorder
    recorder.record(ledger.DEAD_LETTERED, LedgerPlace("/", queue="q"), [1, 2], reason="expired")
    found = await told(house, per_object=True)
    assert found["hopline_messages_dead_lettered_total", "expired"] == 2
    assert not any("q" in name for name in found)


async def test_router_and_store(house: House) -> None:
    """The router reports objects and changes, the store what it has written, and the holders of leases."""
    await house.declare("q", durable=True)
    router, store = await told(house, "router"), await told(house, "store")
    assert router["hopline_router_writes",] == router["hopline_topology_changes_total", "queue.created"] == 1
    things = ("virtual_host", "exchange", "queue", "binding")
    counts = [router.get(("hopline_topology_objects", thing), 0) for thing in things]
    assert counts == [1, 6, 1, 0]
    assert store["hopline_leases_changes_total", "acquired"] == 9  # eight partitions, and the lease of the writer
    commits = store["hopline_store_commit_duration_seconds",]
    assert commits == store["hopline_store_commit_size",] >= 1


async def test_messages_are_counted_unless_told_otherwise(tmp_path: Path) -> None:
    """Without HOPLINE_METRICS messages are not counted, and gauges are exported all the same."""
    house = House(tmp_path, metrics=False)
    await house.start()
    queue_id = await house.declare("q")
    await (await house.link()).publish(queue_id, [b"1", b"2"])
    found = await told(house)
    await house.stop()
    assert found["hopline_messages_ready",] == 2
    assert not any(name[0].endswith("_total") and "messages" in name[0] for name in found)


def test_ten_thousand_queues() -> None:
    """Ten thousand queues, each counted with all that can befall its messages, take less than two kibibytes each."""
    queues = CountedQueues(Meters("queue", "queue-1-a"))
    counted = CountedStages(OFF, Meters("queue", "queue-1-a"), [queues])
    fates = (ledger.ENQUEUED, ledger.PERSISTED, ledger.DELIVERED, ledger.SETTLED, ledger.REQUEUED, ledger.EXPIRED)
    places = [LedgerPlace("/", queue=f"queue {number}", partition=number % 64) for number in range(10_000)]
    tracemalloc.start()
    for _ in range(3):
        for place in places:
            for stage in fates:
                counted.record(stage, place, range(1000), reason="because")
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(queues) == 10_000
    assert taken < 10_000 * 2048
