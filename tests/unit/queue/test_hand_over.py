"""What a process that ends, or shares out, leaves to the next owner of its partitions."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any
from unittest.mock import AsyncMock

import pytest

from services.common.clock import epoch_ms, monotonic
from services.queue.links import link as links
from services.queue.links import untold
from services.queue.links.expected import ANYBODY
from services.queue.partitions import partition as partition_module
from services.queue.partitions import partitions
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.service import Service
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


class HandSet:
    """A clock that only the test moves; it counts how often it is read."""

    def __init__(self) -> None:
        self.now = monotonic()
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now

    async def is_looked_at(self) -> None:
        """Returns when a loop that polls has polled many times."""
        looked = self.looks
        async with asyncio.timeout(60):
            while self.looks < looked + 100:
                await asyncio.sleep(0.005)


async def another_owner(house: House, *names: str) -> None:
    """The only queue process ends, and starts again."""
    for name in names or ("queue-1",):
        await house.queues.pop(name).stop()
    await house.start_queue("queue-1")


@pytest.mark.parametrize("durable", [False, True])
async def test_everything_moves_in_order(house: House, durable: bool) -> None:
    """Transient and persistent messages of one queue come in the order in which they were published, over two moves."""
    queue_id = await house.declare("q", durable=durable)
    link = await house.link()
    for number in range(20):
        await link.publish(queue_id, [f"{number}".encode()], persistent=number % 3 == 0)
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.publish(queue_id, [b"20"])
    await another_owner(house)
    link = await house.link(origin=1002)
    await link.publish(queue_id, [b"21"], persistent=True)
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 22)
    assert link.bodies == [f"{number}".encode() for number in range(22)]
    assert not any(run.redelivered for run in link.runs)


@pytest.mark.parametrize("durable", [False, True])
async def test_what_was_handed_over_can_be_settled(house: House, durable: bool) -> None:
    """An acknowledged message does not come back with a later owner, for any kind of message and queue."""
    queue_id = await house.declare("q", durable=durable)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2", b"3"])
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id, messages=2)
    await link.until(lambda: len(link.uids) == 2)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.ready(queue_id, 1)
    await link.close()
    await another_owner(house)
    assert await (await house.link(origin=1002)).ready(queue_id, 1) == 1


def origins(service: Service) -> set[int]:
    """Of the gateways that a queue process has streams of."""
    return {link.origin for link in service._host.links}


async def orphaned(house: House) -> tuple[int, Partition]:
    """A queue of queue-1, which has ended; queue-2 has read its partition back, and waits for its links."""
    owned = house.queues["queue-1"]._host.registry.queues
    names = (f"q{number}" for number in itertools.count())
    while (queue_id := await house.declare(next(names))) not in owned:
        pass
    await house.queues.pop("queue-1").stop()
    return queue_id, (await takes_over(house, "queue-2", queue_id))[1]


async def takes_over(house: House, name: str, queue_id: int) -> tuple[Service, Partition]:
    """The queue process of this name, and the partition of this queue, once it has it."""
    number = house.topology.queues[queue_id].partition
    async with asyncio.timeout(60):
        while not (
            (heir := house.queues.get(name))
            and hasattr(heir, "_host")  # it has one once it has begun
            and (partition := heir._host.registry.partitions.get(number))
        ):
            await asyncio.sleep(0.005)
    return heir, partition


async def something_waits(partition: Partition) -> None:
    """For the partition, on its way here."""
    async with asyncio.timeout(60):
        while not partition.waiting:
            await asyncio.sleep(0.005)


async def sent_again(house: House, one: RawLink) -> tuple[int, dict[str, Any]]:
    """`one` has said all, and sent two messages again; gives their queue, and what another says who holds the first."""
    queue_id, partition = await orphaned(house)
    told = [pb.Told(partition=partition.number, epoch=partition.epoch)]
    raw = one.batch(queue_id, [b"held", b"new"], resent=True)
    held = pb.PublishBatch.FromString(raw).uids[:1]
    consumer = pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1 << 30)
    await one.send(attaches=[consumer], publishes=[raw], told=told)
    await asyncio.sleep(0.1)
    assert partition.state is PartitionState.RECOVERING
    attach = pb.AttachConsumer(consumer=2, queue_id=queue_id, held=held, again=True)
    return queue_id, {"attaches": [attach], "told": told}


async def test_every_gateway_is_heard(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new owner delivers nothing before every gateway has said what it holds, even of what comes again later."""
    monkeypatch.setattr(partitions, "_SHORTLY", 30.0)
    await house.start_queue("queue-2")
    one = await house.link("queue-2", origin=1001, tells=True)
    other = await house.link("queue-2", origin=1002, tells=True)
    queue_id, claim = await sent_again(house, one)
    await other.send(**claim)
    await one.until(lambda: one.bodies)
    assert one.bodies == [b"new"]
    held = claim["attaches"][0].held
    await other.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=held)])
    await one.until(lambda: one.bodies == [b"new", b"held"])


async def test_a_gateway_that_comes_back_is_heard(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway whose stream has just ended may have a consumer that lives: a new owner waits to hear from it too."""
    monkeypatch.setattr(partitions, "_SHORTLY", 30.0)
    monkeypatch.setattr(links, "_RETURN_SECONDS", 30.0)
    heir = await house.start_queue("queue-2")
    one = await house.link("queue-2", origin=1001, tells=True)
    other = await house.link("queue-2", origin=1002, tells=True)
    await one.until(lambda: {1001, 1002} <= origins(heir))
    await other.close()
    await one.until(lambda: 1002 not in origins(heir))
    _, claim = await sent_again(house, one)
    again = await house.link("queue-2", origin=1002, tells=True)
    await again.send(**claim)
    await one.until(lambda: one.bodies)
    assert one.bodies == [b"new"]


async def test_a_first_process_waits_for_all_gateways(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has just come knows no gateway: the first to find it does not get what the second one holds."""
    queue_id = await house.declare("q", durable=True)
    former = await house.link()
    await former.publish(queue_id, [b"held", b"new"], persistent=True)
    await former.attach(queue_id, messages=1)
    await former.until(lambda: former.uids)
    monkeypatch.setattr(partitions.Partitions, "_hand_over", AsyncMock(return_value=[]))  # as when it was killed
    await house.queues.pop("queue-1").stop()
    monkeypatch.undo()
    monkeypatch.setattr(partitions, "_SHORTLY", 3600.0)
    monkeypatch.setattr(untold, "_FIRST_WORDS", 3600.0)
    starting = asyncio.create_task(house.start_queue("queue-1"))
    heir, partition = await takes_over(house, "queue-1", queue_id)
    one = await house.link(origin=1001)
    await one.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1 << 30)])
    await something_waits(partition)
    other = await house.link(origin=1002)
    again = pb.AttachConsumer(consumer=1, queue_id=queue_id, bytes=1 << 30, again=True, held=former.uids)
    await other.send(attaches=[again])
    await other.until(lambda: partition.claiming)
    assert partition.state is PartitionState.RECOVERING
    heir._host.expected.came(ANYBODY)  # as when the first words are over
    await one.until(lambda: one.bodies)
    assert one.bodies == [b"new"]
    await starting


async def test_a_stream_that_ends_in_doubt(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the leases may have run out, nothing that a lost gateway held goes to another one."""
    queue_id = await house.declare("q")
    one, other = await house.link(origin=1001), await house.link(origin=1002)
    await one.publish(queue_id, [b"held"])
    await one.attach(queue_id)
    await one.until(lambda: one.bodies)
    await other.attach(queue_id)
    host = house.queues["queue-1"]._host
    monkeypatch.setattr(host, "leases_hold", lambda: False)
    await one.close()
    await other.until(lambda: 1001 not in origins(house.queues["queue-1"]))
    await asyncio.sleep(0.1)
    assert not other.bodies
    monkeypatch.undo()
    host.resume(valid=True)
    await other.until(lambda: other.bodies)
    assert other.bodies == [b"held"]


async def test_no_gateway_is_waited_for_long(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that says nothing, or what it knew too early, holds a new owner up for a moment of its clock only."""
    clock = HandSet()
    await house.start_queue("queue-2")
    monkeypatch.setattr(partitions, "monotonic", clock)
    link = await house.link("queue-2", origin=1001, tells=True)
    queue_id, partition = await orphaned(house)
    await link.send(told=[pb.Told(partition=partition.number, epoch=partition.epoch - 1)])
    await clock.is_looked_at()
    assert partition.state is PartitionState.RECOVERING
    clock.now += partitions._SHORTLY
    await link.attach(queue_id)
    assert partition.state is PartitionState.SERVING


async def test_the_publisher_of_what_waits_is_gone(house: House) -> None:
    """What waits for a partition is not taken when its stream has broken: it may have been sent elsewhere since."""
    await house.start_queue("queue-2")
    gone = await house.link("queue-2", origin=1001)
    other = await house.link("queue-2", origin=1002, tells=True)
    queue_id, partition = await orphaned(house)
    await gone.send(publishes=[gone.batch(queue_id, [b"old"])])
    await something_waits(partition)
    await gone.close()
    await other.send(told=[pb.Told(partition=partition.number, epoch=partition.epoch)])
    await other.publish(queue_id, [b"new"])
    await other.attach(queue_id)
    await other.until(lambda: other.bodies)
    assert other.bodies == [b"new"]


async def test_what_comes_while_a_process_ends(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that is on its way to a process that ends is not served there: what waits for it goes elsewhere."""
    monkeypatch.setattr(partitions, "_SHORTLY", 30.0)
    await house.start_queue("queue-2")
    link = await house.link("queue-2", origin=1001, tells=True)
    queue_id, partition = await orphaned(house)
    await link.send(publishes=[link.batch(queue_id, [b"new"])])
    await something_waits(partition)
    hand_over, over = partitions.Partitions._hand_over, asyncio.Event()

    async def slowly(self: partitions.Partitions, *args: Any) -> list[int]:
        await over.wait()
        return await hand_over(self, *args)

    monkeypatch.setattr(partitions.Partitions, "_hand_over", slowly)
    ending = asyncio.create_task(house.queues.pop("queue-2").stop())
    # While it hands its own over, all is said that the other one waits for.
    await link.send(told=[pb.Told(partition=partition.number, epoch=partition.epoch)])
    await asyncio.sleep(0.1)
    over.set()
    await link.until(link.done)
    assert [each.reason for frame in link.frames for each in frame.refusals] == [pb.NOT_OWNER]
    await ending


async def test_requeued_keeps_its_place(house: House) -> None:
    """What was given back before the move comes first after it, marked, although what follows was on disk before."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.attach(queue_id, messages=1)
    await link.publish(queue_id, [b"1"])
    await link.publish(queue_id, [b"2"], persistent=True)
    await link.send(detaches=[1], settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
    assert await link.ready(queue_id, 1) == 2
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 2)
    assert link.bodies == [b"1", b"2"]
    assert [run.redelivered for run in link.runs] == [True, False]


async def held_by_two(house: House, queue_id: int, **run: bool) -> list[RawLink]:
    """Two gateways with a consumer each, that hold one message each; a third message waits."""
    links = [await house.link(), await house.link(origin=1001)]
    for link in links:
        await link.attach(queue_id, messages=1)
    await links[0].publish(queue_id, [b"1", b"2", b"3"], **run)
    await links[1].until(lambda: links[1].uids)
    return links


@pytest.mark.parametrize("persistent", [False, True])
async def test_held_are_kept_for_their_gateways(house: House, persistent: bool) -> None:
    """The first gateway gets nothing that another holds; its own acknowledgements count, the rest comes again."""
    queue_id = await house.declare("q", durable=True)
    former = await held_by_two(house, queue_id, persistent=persistent)
    await another_owner(house)
    first, second = await house.link(), await house.link(origin=1001)
    await first.attach(queue_id, messages=1, again=True, held=former[0].uids)
    await first.until(lambda: first.bodies == [b"3"])
    assert await first.ready(queue_id, 1) == 0
    await first.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=former[0].uids)])
    await second.attach(queue_id, again=True)
    await second.until(lambda: second.bodies == former[1].bodies)
    assert [run.redelivered for run in second.runs] == [True]


async def test_held_by_no_client_any_more(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a gateway held that does not come back goes to others in the end."""
    monkeypatch.setattr(partition_module, "CLAIM_MS", 3000)
    queue_id = await house.declare("q")
    await held_by_two(house, queue_id)
    await another_owner(house)
    link = await house.link(origin=1002)
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 3)
    assert link.bodies == [b"3", b"1", b"2"]


async def test_expiry_moves_too(house: House) -> None:
    """A message expires when it would have, not a time to live after the move."""
    queue_id = await house.declare("q", message_ttl=600_000)
    link = await house.link()
    await link.publish(queue_id, [b"1"], time_ms=epoch_ms() - 595_000, resent=True)
    await another_owner(house)
    link = await house.link(origin=1001)
    assert await link.ready(queue_id, 1) == 1
    async with asyncio.timeout(60):
        for number in itertools.count(2):
            if await link.ready(queue_id, number) == 0:
                break
            await asyncio.sleep(0.1)


async def test_deleted_meanwhile(house: House) -> None:
    """Entries of a queue that is deleted while it has no owner are dropped by the next owner, on disk too."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"])
    await house.queues.pop("queue-1").stop()
    await house.delete("q")
    service = await house.start_queue("queue-1")
    await link.until(lambda: not any(partition.orphans for partition in service._host.registry.partitions.values()))
    await service._host.writer.drained()
    assert service._host.account.used == 0
    assert house.store._engine._live.batches == {}


@pytest.mark.parametrize("epoch", [1, 2])
async def test_a_partition_that_is_read_back_in_doubt(
    house: House, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    """Nothing of it is served while the leases may have run out, however long the machine slept meanwhile."""
    clock = HandSet()
    await house.start_queue("queue-2")
    heir = house.queues["queue-2"]._host
    monkeypatch.setattr(partitions, "monotonic", clock)
    link = await house.link("queue-2", origin=1001, tells=True)
    queue_id, partition = await orphaned(house)
    await clock.is_looked_at()
    with monkeypatch.context() as meanwhile:
        # No answer of the store comes, which would tell the epoch.
        meanwhile.setattr(house.queues["queue-2"]._partitions, "renewed", lambda *_: None)
        meanwhile.setattr(heir, "leases_hold", lambda: False)
        partition.epoch, told = epoch, partition.epoch
        clock.now += 3600
        await clock.is_looked_at()
        assert partition.state is PartitionState.RECOVERING
        partition.epoch = told
    monkeypatch.setattr(heir, "leases_hold", lambda: True)
    await link.send(told=[pb.Told(partition=partition.number, epoch=told)])
    heir.resume(valid=True)
    await link.attach(queue_id)
    assert partition.state is PartitionState.SERVING
