"""A queue process over real gRPC, with a real store and router."""

from __future__ import annotations

import asyncio

import pytest

from services.common.clock import epoch_ms
from services.common.message import format_named
from services.common.runtime import Keeper
from services.queue.links import link as links
from services.queue.service import Service as QueueService
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


@pytest.fixture
def lease_ttl_ms() -> int:
    """Renewed several times a second: with that, processes hear who comes, and what moves."""
    return 1000


async def test_publish_and_deliver(house: House) -> None:
    """What is published reaches the consumer in order, and the batch is done."""
    queue_id = await house.declare("q")
    link = await house.link()
    assert (await link.attach(queue_id)).reason == pb.NONE
    await link.publish(queue_id, [b"1", b"2", b"3"])
    assert link.bodies == [b"1", b"2", b"3"]
    assert [(run.consumer, run.count) for run in link.runs] == [(1, 3)]
    assert link.properties == [b"\x00\x00"] * 3


async def test_a_backlog_is_kept_for_good_reason(house: House) -> None:
    """What waits is not asked back from the process, and what is gone is."""
    queue_id = await house.declare("q")
    link, service = await house.link(), house.queues["queue-1"]
    assert isinstance(service, Keeper)
    before = service.kept()
    await link.publish(queue_id, [bytes(100_000)])
    assert service.kept() > before + 100_000
    await link.attach(queue_id)
    await link.until(lambda: len(link.uids) == 1)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    async with asyncio.timeout(10):
        while service.kept() > before:
            await asyncio.sleep(0.01)


async def test_settled_credit_and_get(house: House) -> None:
    """Credit lets messages through, acknowledged ones are gone, a get takes one."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, messages=1)
    await link.publish(queue_id, [b"1", b"2", b"3"])
    await link.until(lambda: len(link.uids) == 1)
    await link.send(
        settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)],
        credits=[pb.Credit(consumer=1, messages=1)],
    )
    await link.until(lambda: len(link.uids) == 2)
    reply = await link.request(7, get=pb.GetRequest(queue_id=queue_id))
    assert (list(reply.message.bodies), reply.message_count) == ([b"3"], 0)


async def test_settlements_are_answered(house: House) -> None:
    """Each frame with settlements is answered, with the next thing that is said, when they are on disk."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"a", b"b"], persistent=True)
    await link.attach(queue_id)
    await link.until(lambda: len(link.uids) == 2)
    for uid in list(link.uids):
        await link.send(settles=[pb.Settle(queue_id=queue_id, uids=[uid])])
        await link.publish(queue_id, [b"c"], persistent=True)
    await link.send(heard=3)
    await link.publish(queue_id, [b"d"], persistent=True)
    assert [number for frame in link.frames for number in frame.settled] == [1, 2]


async def test_a_later_stream_counts(house: House) -> None:
    """A gateway that connects again has given its former stream up: nothing that still comes from there is taken."""
    queue_id = await house.declare("q")
    former, later = await house.link(), await house.link()
    assert await later.ready(queue_id, 1) == 0
    await former.send(publishes=[former.batch(queue_id, [b"old"])])
    await asyncio.sleep(0.1)
    await later.publish(queue_id, [b"new"])
    assert await later.ready(queue_id, 2) == 1
    assert former.done() == []


async def test_broken_link_gives_back(house: House) -> None:
    """What a link held when it broke is delivered to others, marked as redelivered."""
    queue_id = await house.declare("q")
    first, second = await house.link(), await house.link(origin=1001)
    await first.attach(queue_id)
    await first.publish(queue_id, [b"1", b"2"])
    await first.until(lambda: len(first.uids) == 2)
    await first.close()
    await second.attach(queue_id)
    await second.until(lambda: len(second.uids) == 2)
    assert [run.redelivered for run in second.runs] == [True]


async def test_a_gateway_comes_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what its broken link held, what it still holds stays its own, and the rest goes to its place as it comes."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 60.0)
    queue_id = await house.declare("q")
    first, other = await house.link(origin=1001, tells=True), await house.link(origin=1002, tells=True)
    await first.attach(queue_id)
    await first.publish(queue_id, [b"1", b"2", b"3"])
    await first.until(lambda: len(first.uids) == 3)
    await other.attach(queue_id)
    await first.close()
    await asyncio.sleep(0.1)
    assert not other.bodies
    again = await house.link(origin=1001, tells=True)
    await again.attach(queue_id, messages=0, held=first.uids[:2], again=True)
    await other.until(lambda: other.bodies == [b"3"])
    await again.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=first.uids[:1])])
    await again.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=first.uids[1:2])])
    await other.until(lambda: other.bodies == [b"3", b"2"])


@pytest.mark.parametrize("returns", [True, False])
async def test_a_moment_without_a_consumer(house: House, monkeypatch: pytest.MonkeyPatch, returns: bool) -> None:
    """A queue is not deleted because the stream of its last consumer broke, but because the gateway stays away."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 1.0)
    queue_id = await house.declare("q", auto_delete=True)
    link = await house.link(origin=1001, tells=True)
    await link.attach(queue_id)
    await link.close()
    if returns:
        await (await house.link(origin=1001, tells=True)).attach(queue_id, again=True)
        await asyncio.sleep(1.5)
        assert queue_id in house.topology.queues
    await link.until(lambda: returns or queue_id not in house.topology.queues)


async def test_refusals(house: House) -> None:
    """Messages for no queue, and those that a full queue refuses, come back with the reason."""
    queue_id = await house.declare("q", max_length=1, overflow="reject-publish")
    link = await house.link()
    await link.publish(12345, [b"1"])
    await link.publish(queue_id, [b"1", b"2"])
    assert link.refusals() == [(0, 1, pb.UNKNOWN_QUEUE), (1, 1, pb.OVERFLOW)]


async def test_delete(house: House) -> None:
    """A delete checks its conditions, counts what went, and ends the consumers."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"])
    in_use = pb.DeleteRequest(queue_id=queue_id, if_empty=True)
    assert (await link.request(1, delete=in_use)).reason == pb.NOT_EMPTY
    await link.attach(queue_id, messages=1)
    assert (await link.request(2, delete=pb.DeleteRequest(queue_id=queue_id, if_unused=True))).reason == pb.IN_USE
    reply = await link.request(3, delete=pb.DeleteRequest(queue_id=queue_id))
    assert (reply.reason, reply.message_count) == (pb.NONE, 1)
    assert [(c.consumer, c.reason) for f in link.frames for c in f.cancelled] == [(1, pb.UNKNOWN_QUEUE)]
    assert house.queues["queue-1"]._host.account.used == 0


async def test_auto_delete_and_unused(house: House) -> None:
    """Queues are deleted with their last consumer, and when unused for x-expires."""
    auto_delete = await house.declare("a", auto_delete=True)
    unused = await house.declare("b", expires=100)
    link = await house.link()
    await link.attach(auto_delete)
    await link.send(detaches=[1])
    await link.until(lambda: auto_delete not in house.topology.queues and unused not in house.topology.queues)


async def test_recovery(house: House) -> None:
    """A successor has what was not acknowledged, and knows what was sent again."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2", b"3"], persistent=True)
    await link.publish(queue_id, [b"transient"])
    await link.attach(queue_id, messages=2)
    await link.until(lambda: len(link.uids) == 2)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[:1])])
    await link.ready(queue_id, 1)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    again = await house.link()
    first = 1000 << 39
    await again.publish(queue_id, [b"3", b"4"], uids=[first + 3, first + 5], persistent=True, resent=True)
    await again.attach(queue_id, held=[first + 2], again=True)
    await again.until(lambda: len(again.uids) == 3)
    assert again.bodies == [b"3", b"transient", b"4"]
    await again.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=[first + 2])])
    await again.until(lambda: len(again.uids) == 4)
    assert [(again.bodies[3], again.runs[-1].redelivered)] == [(b"2", True)]


async def test_handover_to_a_second_process(house: House) -> None:
    """A second process gets half of the partitions, with what is in them; the first refuses what is for them."""
    queue_ids = [await house.declare(f"q{number}", durable=True) for number in range(16)]
    first = await house.link()
    for queue_id in queue_ids:
        await first.publish(queue_id, [b"x"], persistent=True)
    await house.start_queue("queue-2")
    registries = [service._host.registry for service in house.queues.values()]
    async with asyncio.timeout(10):
        while [len(registry.partitions) for registry in registries] != [4, 4]:
            await asyncio.sleep(0.02)
    second = await house.link("queue-2", origin=1001)
    await second.until(lambda: len(registries[0].queues) + len(registries[1].queues) == 16)
    for number, queue_id in enumerate(registries[1].queues):
        assert await second.ready(queue_id, number) == 1
        sequence = await first.publish(queue_id, [b"y"], persistent=True)
        assert (0, 1, pb.NOT_OWNER) in [(r.first, r.count, r.reason) for f in first.frames for r in f.refusals
                                        if r.sequence == sequence]  # fmt: skip
    assert sum(len(frame.lost_partitions) for frame in first.frames) == 4


async def test_stop_before_all_is_served(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is to stop while it starts hands over what it has taken by then: transient messages stay."""
    queue_ids = [await house.declare(f"q{number}") for number in range(16)]
    service, first = QueueService(house.settings, "queue-2"), house.queues["queue-1"]._host.registry
    monkeypatch.setattr(service._server, "ready", asyncio.Event().wait)
    starting = asyncio.create_task(service.start())
    link = await house.link()
    await link.until(lambda: len(first.partitions) == 4 and any(queue_id not in first.queues for queue_id in queue_ids))
    there = await house.link("queue-2")
    await there.until(lambda: service._host.registry.queues)
    queue_id = next(iter(service._host.registry.queues))
    await there.publish(queue_id, [b"transient"])
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await link.until(lambda: queue_id in first.queues)
    assert await link.ready(queue_id, 1) == 1


async def test_nothing_follows_what_was_refused_before_that_itself(house: House) -> None:
    """What was under way behind a refused message is refused too, until all of it comes again: order is kept."""
    queue_id = await house.declare("q", durable=True)
    link, queues = await house.link(), house.queues["queue-1"]._host.registry.queues
    await link.attach(queue_id)
    queue = queues.pop(queue_id)  # as long as this process does not know yet that the partition is its own
    first, second = link.batch(queue_id, [b"1"], persistent=True), link.batch(queue_id, [b"2"], persistent=True)
    await link.send(publishes=[first])
    await link.until(lambda: len(link.refusals()) == 1)
    queues[queue_id] = queue
    await link.send(publishes=[second])
    await link.until(lambda: len(link.refusals()) == 2)
    uids = [uid for raw in (first, second) for uid in pb.PublishBatch.FromString(raw).uids]
    await link.publish(queue_id, [b"2"], uids=uids[1:], persistent=True, resent=True)  # sent again for another reason
    await link.until(lambda: len(link.refusals()) == 3)
    resumed = [queue.options.partition]
    await link.publish(queue_id, [b"1", b"2"], uids=uids, persistent=True, resent=True, resumed=resumed)
    await link.publish(queue_id, [b"3"], persistent=True)
    await link.until(lambda: len(link.bodies) == 3)
    assert link.bodies == [b"1", b"2", b"3"]
    assert [reason for _, _, reason in link.refusals()] == [pb.NOT_OWNER] * 3


async def test_transaction(house: House) -> None:
    """Prepared parts are invisible until complete, and gone after an abort."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    store = house.queues["queue-1"]._store
    for number, step in ((77, pb.TransactionStep.COMPLETE), (78, pb.TransactionStep.ABORT)):
        raw = link.batch(queue_id, [b"1", b"2"], transaction=number, persistent=True)
        await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=number)])
        await link.until(lambda number=number: any(p.transaction == number for f in link.frames for p in f.prepared))
        prepared = [p for f in link.frames for p in f.prepared][-1]
        assert (prepared.parts, prepared.reason) == (1, pb.NONE)
        if step == pb.TransactionStep.COMPLETE:
            assert await link.ready(queue_id, number) == 0
            assert (await store.commit_transaction(number, 1)).committed
        await link.send(transactions=[pb.TransactionStep(transaction=number, step=step)])
        await link.until(lambda number=number: any(number in f.completed for f in link.frames))
        assert await link.ready(queue_id, number + 100) == 2
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    assert await (await house.link()).ready(queue_id, 1) == 2


async def test_transaction_settles(house: House) -> None:
    """A settlement in a transaction counts when it is complete; a broken link's prepared one as the store says."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.until(lambda: link.uids)
    settle = pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids, transaction=5)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(f.prepared for f in link.frames))
    await link.close()
    other = await house.link(origin=1001)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == [b"1"])


async def test_dead_letters(house: House) -> None:
    """An expired message goes to the dead-letter exchange with its history, and leaves its queue only then."""
    source = await house.declare("source", durable=True, message_ttl=50, dead_letter_exchange="dlx")
    target = await house.declare("target", durable=True)
    await house.declare_exchange("dlx", "target", "key")
    link = await house.link()
    await link.publish(source, [b"1", b"2"], persistent=True, time_ms=epoch_ms())
    await link.attach(target)
    await link.until(lambda: link.bodies == [b"1", b"2"])
    properties = link.properties[0]
    headers = format_named("amqp-0-9").headers(properties)
    [death] = headers["x-death"]
    assert (death["queue"], death["reason"], death["count"], death["routing-keys"]) == ("source", "expired", 1, ["key"])
    assert headers["x-first-death-queue"] == "source"
    assert link.facts[0].exchange == "dlx"


async def test_dead_letters_wait_for_a_full_target(house: House) -> None:
    """A letter that its target refuses as full stays with its source until there is room, then it is delivered."""
    source = await house.declare("source", message_ttl=50, dead_letter_exchange="dlx")
    target = await house.declare("target", max_length=1, overflow="reject-publish")
    await house.declare_exchange("dlx", "target", "key")
    link = await house.link()
    await link.publish(target, [b"full"])
    await link.publish(source, [b"1", b"2"], time_ms=epoch_ms())
    await asyncio.sleep(0.4)
    assert await link.ready(target, 1) == 1
    assert len(house.queues["queue-1"]._partitions._office.letters_of(
        house.queues["queue-1"]._host.registry.partition_of(source)
    )) == 2  # fmt: skip
    await link.attach(target)
    await link.until(lambda: sorted(link.bodies) == [b"1", b"2", b"full"])


async def test_attach_twice(house: House) -> None:
    """A consumer that asks again has not become two."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id)
    await link.attach(queue_id, again=True, messages=1)
    await link.publish(queue_id, [b"1", b"2"])
    reply = await link.request(1, inspect=pb.InspectRequest(queue_id=queue_id))
    assert (reply.consumer_count, reply.message_count, link.bodies) == (1, 1, [b"1"])


async def test_order_across_owners(house: House) -> None:
    """What several owners wrote is read back in the order of arrival, whichever of them started first."""
    queue_id = await house.declare("q", durable=True)
    await house.start_queue("queue-2")
    link = await house.link()
    partition = house.topology.queues[queue_id].partition
    services = list(house.queues.items())
    bodies = []
    for _ in range(3):
        name = next(name for name, service in services if partition in service._host.registry.partitions)
        owner = await house.link(name, origin=2000 + len(bodies))
        bodies.append(f"{len(bodies)}".encode())
        await owner.until(lambda name=name: queue_id in house.queues[name]._host.registry.queues)
        await owner.publish(queue_id, [bodies[-1]], persistent=True)
        await house.queues.pop(name).stop()
        services = list(house.queues.items())
        other = services[0][1]._host.registry
        await link.until(lambda other=other: queue_id in other.queues)
        await house.start_queue(name)
        services = list(house.queues.items())
    name = next(name for name, service in services if queue_id in service._host.registry.queues)
    reader = await house.link(name, origin=3000)
    await reader.attach(queue_id)
    await reader.until(lambda: len(reader.bodies) == 3)
    assert reader.bodies == bodies
