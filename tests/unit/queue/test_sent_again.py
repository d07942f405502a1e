"""What a publisher sends again is taken where it was not, and never twice, also by a new owner of the partition."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import NamedTuple

import pytest

from services.queue.journal import ticket
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.support.read_back import batches_of

FIRST = 1000 << 39


async def queues_of_one_partition(house: House, count: int) -> list[int]:
    """Durable ones."""
    by_partition: dict[int, list[int]] = {}
    for number in itertools.count():
        queue_id = await house.declare(f"q{number}", durable=True)
        found = by_partition.setdefault(house.topology.queues[queue_id].partition, [])
        found.append(queue_id)
        if len(found) == count:
            return found
    raise AssertionError


async def next_owner(house: House) -> None:
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")


async def ready(link: RawLink, queue_ids: list[int]) -> list[int]:
    return [await link.ready(queue_id, 10_000 + queue_id) for queue_id in queue_ids]


async def test_a_fan_out_comes_again_in_parts(house: House) -> None:
    """Of a message for three queues of a partition, the next owner takes what is missing, queue by queue."""
    queue_ids = await queues_of_one_partition(house, 3)
    link = await house.link()
    await link.publish(queue_ids[:1], [b"1", b"2"], uids=[FIRST + 1, FIRST + 2], persistent=True)
    await next_owner(house)
    again = await house.link()
    for queue_id in queue_ids:
        await again.publish(queue_id, [b"1", b"2"], uids=[FIRST + 1, FIRST + 2], persistent=True, resent=True)
    assert await ready(again, queue_ids) == [2, 2, 2]


async def test_what_was_overtaken_is_not_taken_for_known(house: House) -> None:
    """Messages that come again behind later ones are taken; those that were there are not taken again."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"9"], uids=[FIRST + 1, FIRST + 9], persistent=True)
    await next_owner(house)
    again = await house.link()
    bodies = [b"1", b"4", b"5", b"9"]
    uids = [FIRST + int(body) for body in bodies]
    await again.publish(queue_id, bodies, uids=uids, persistent=True, resent=True)
    await again.attach(queue_id)
    await again.until(lambda: len(again.bodies) == 4)
    assert sorted(again.bodies) == bodies


async def test_what_was_consumed_before_its_publisher_knew_is_not_taken_again(house: House) -> None:
    """A message that has left its queue, in the journal too, is known to the owners after that."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1", b"2"], uids=[FIRST + 1, FIRST + 2], persistent=True)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.ready(queue_id, 1)
    for _ in range(2):
        await next_owner(house)
        again = await house.link()
        await again.publish(
            queue_id, [b"1", b"2", b"3"], uids=[FIRST + 1, FIRST + 2, FIRST + 3], persistent=True, resent=True
        )
        assert await ready(again, [queue_id]) == [1]


async def test_a_torn_stream_doubles_nothing(house: House) -> None:
    """The same owner knows on another stream what it took on the one before, durable or not."""
    queue_id, other = (await queues_of_one_partition(house, 1))[0], await house.declare("transient")
    link = await house.link()
    for each in (queue_id, other):
        await link.publish(each, [b"1", b"2"], uids=[FIRST + 1, FIRST + 2], persistent=True)
    await link.close()
    again = await house.link()
    for each in (queue_id, other):
        uids = [FIRST + 1, FIRST + 2, FIRST + 3]
        await again.publish(each, [b"1", b"2", b"3"], uids=uids, persistent=True, resent=True)
    assert await ready(again, [queue_id, other]) == [3, 3]


async def test_what_was_heard_is_forgotten(house: House) -> None:
    """Nothing is kept of a publisher that has heard its answers, and sent again what former owners did not answer."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.publish(queue_id, [b"1"], uids=[FIRST + 1], persistent=True)
    await next_owner(house)
    again = await house.link()
    partition = house.queues["queue-1"]._host.registry.partitions[house.topology.queues[queue_id].partition]
    assert partition.known.origins() == [1000]
    sent = again.batch(queue_id, [b"1"], uids=[FIRST + 1], persistent=True, resent=True)
    said = [pb.SentAgain(partition=partition.number, epoch=partition.epoch)]
    await again.send(publishes=[sent], sent_again=said)
    await again.until(lambda: again.done() == [1])
    assert partition.known.origins() == [1000]
    await again.send(heard=1)
    await again.ready(queue_id, 1)
    assert partition.known.origins() == []


async def test_a_lease_that_is_lost_takes_no_other_partition_s_acks_with_it(house: House) -> None:
    """Of a frame that is fenced for one of two partitions, those of the second can be acked at once, and stay gone."""
    (mine,) = await queues_of_one_partition(house, 1)
    lost = mine
    while (number := house.topology.queues[lost].partition) == house.topology.queues[mine].partition:
        lost = await house.declare(f"other-{lost}", durable=True)
    epochs, link = house.store._engine.epochs, await house.link()
    await link.attach(mine)
    epochs.advance(f"partition/{number}")
    raw = link.batch([mine, lost], [b"1"], uids=[FIRST + 1], persistent=True)
    await link.send(publishes=[raw])
    await link.send(settles=[pb.Settle(queue_id=mine, outcome=pb.ACCEPT, uids=[FIRST + 1])])
    await link.until(lambda: link.done() == [1])
    assert [(refusal.queue_id, refusal.reason) for frame in link.frames for refusal in frame.refusals] == [
        (lost, pb.NOT_OWNER)
    ]
    await link.send(heard=1)
    await is_safe(link)
    provider = house.store._engine.provider
    left = [batch async for batch in batches_of(provider, house.topology.queues[mine].partition)]
    assert left == []


async def two_partitions(house: House) -> tuple[int, int]:
    """A queue of each."""
    by_partition: dict[int, int] = {}
    for number in itertools.count():
        queue_id = await house.declare(f"q{number}", durable=True)
        by_partition.setdefault(house.topology.queues[queue_id].partition, queue_id)
        if len(by_partition) == 2:
            break
    first, second = by_partition.values()
    return first, second


class Parted(NamedTuple):
    """A consumer has the copy in `queue_id`; the other waits for a partition, which `comes` brings."""

    queue_id: int
    consumer: RawLink
    publisher: RawLink
    comes: Callable[[], None]


async def delivered_while_some_waits(house: House) -> Parted:
    """A message of two copies."""
    here, coming = await two_partitions(house)
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(coming)
    assert partition
    queue = registry.queues.pop(coming)
    partition.state = PartitionState.RECOVERING
    consumer, publisher = await house.link(origin=1001), await house.link(origin=1000)
    await consumer.attach(here)
    await publisher.send(publishes=[publisher.batch([here, coming], [b"1"], uids=[FIRST + 1])])
    await consumer.until(lambda: consumer.uids == [FIRST + 1])

    def comes() -> None:
        registry.queues[coming] = queue
        partition.state = PartitionState.SERVING
        partition.replay()

    return Parted(here, consumer, publisher, comes)


async def settled_while_some_waits(house: House) -> tuple[RawLink, RawLink, Callable[[], None]]:
    """The same, when the consumer has settled it."""
    queue_id, consumer, publisher, comes = await delivered_while_some_waits(house)
    await consumer.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[FIRST + 1])])
    await consumer.ready(queue_id, 1)
    return consumer, publisher, comes


async def until_said(link: RawLink, what: Callable[[], bool]) -> None:
    """What is said only with something else."""
    async with asyncio.timeout(10):
        for number in itertools.count(2):
            if what():
                return
            await link.request(number, inspect=pb.InspectRequest())


async def is_safe(consumer: RawLink) -> None:
    """Its settlement is said to be."""
    await until_said(consumer, lambda: settled(consumer) == [1])


async def test_a_settlement_is_safe_when_its_message_does_not_come_again(house: House) -> None:
    """Not while some of the batch waits for a partition: if its owner dies, all of it that is not on disk comes again.

    The consumer's gateway keeps the settlement until then, and tells the next owner.
    """
    consumer, publisher, comes = await settled_while_some_waits(house)
    assert settled(consumer) == []
    comes()
    await publisher.until(publisher.done)
    assert settled(consumer) == []
    await publisher.send(heard=1)
    await is_safe(consumer)


async def test_a_settlement_does_not_wait_for_a_publisher_that_is_gone(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its publisher may come again for a short time; it is not waited for any longer."""
    consumer, publisher, _ = await settled_while_some_waits(house)
    monkeypatch.setattr(ticket, "_RETURN_SECONDS", 0.0)
    await publisher.close()
    async with asyncio.timeout(10):
        while settled(consumer)[:1] != [1]:
            await consumer.send(settles=[pb.Settle(queue_id=1, outcome=pb.ACCEPT, uids=[FIRST + 9])])
            await consumer.request(2, inspect=pb.InspectRequest())
    assert not house.queues["queue-1"]._host.unheard._open


async def test_what_a_transaction_settles_is_safe_when_its_message_does_not_come_again(house: House) -> None:
    """It is carried out at once, and told to be safe when it is: as with settlements without a transaction."""
    queue_id, consumer, publisher, comes = await delivered_while_some_waits(house)
    settle = pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[FIRST + 1], transaction=7)
    await consumer.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7)])
    await completed(consumer)
    assert safe(consumer) == []
    comes()
    await publisher.until(publisher.done)
    await publisher.send(heard=1)
    await until_said(consumer, lambda: safe(consumer) == [7])


async def test_what_is_held_of_an_auto_delete_queue(house: House) -> None:
    """The next owner is told of it, and of what was settled, by a gateway without a consumer there: the queue stays."""
    queue_id = await house.declare("q", durable=True, auto_delete=True)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2", b"3"], uids=[FIRST + 1, FIRST + 2, FIRST + 3], persistent=True)
    await next_owner(house)
    link = await house.link()
    await link.attach(queue_id, held=[FIRST + 1, FIRST + 2], again=True, stray=True)
    assert await link.ready(queue_id, 1) == 1
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[FIRST + 1])])
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=[FIRST + 2])])
    assert await link.ready(queue_id, 2) == 2
    assert (await link.attach(queue_id, consumer=2)).reason == pb.NONE


async def test_what_is_held_without_a_consumer_goes_back_with_its_gateway(house: House) -> None:
    """A gateway that said what it holds, and dies, holds nothing any more."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.publish(queue_id, [b"1"], uids=[FIRST + 1], persistent=True)
    await next_owner(house)
    holder, other = await house.link(origin=1001), await house.link(origin=1002)
    await holder.attach(queue_id, held=[FIRST + 1], again=True, stray=True)
    assert await other.ready(queue_id, 1) == 0
    await holder.close()
    await other.attach(queue_id, consumer=2)
    await other.until(lambda: other.uids == [FIRST + 1])


async def test_a_former_consumer_comes_first(house: House) -> None:
    """A former exclusive consumer finds its place free, also if another was faster at the next owner."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(queue_id)
    assert partition
    queue = registry.queues.pop(queue_id)
    partition.state = PartitionState.RECOVERING
    fast, former = await house.link(origin=1001), await house.link(origin=1002)
    await fast.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id)])
    await fast.until(lambda: partition.waiting)
    await former.send(attaches=[pb.AttachConsumer(consumer=2, queue_id=queue_id, exclusive=True, again=True)])
    await former.until(lambda: partition.claiming)
    registry.queues[queue_id] = queue
    partition.state = PartitionState.SERVING
    partition.replay()
    for link, reason in ((former, pb.NONE), (fast, pb.EXCLUSIVE_USE)):
        await link.until(lambda link=link: any(frame.attached for frame in link.frames))
        assert [each.reason for frame in link.frames for each in frame.attached] == [reason]


def settled(link: RawLink) -> list[int]:
    """Frames whose settlements are safe."""
    return [number for frame in link.frames for number in frame.settled]


def safe(link: RawLink) -> list[int]:
    """Transactions whose settlements are."""
    return [number for frame in link.frames for number in frame.safe]


async def prepared(house: House, outcome: pb.Outcome.ValueType) -> tuple[int, RawLink]:
    """A queue of two messages, both of which a transaction has settled that is not decided yet."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1", b"2"], uids=[FIRST + 1, FIRST + 2])
    await link.until(lambda: len(link.uids) == 2)
    settle = pb.Settle(queue_id=queue_id, outcome=outcome, uids=link.uids, transaction=7)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    return queue_id, link


async def completed(link: RawLink) -> None:
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=pb.TransactionStep.COMPLETE)])
    await link.until(lambda: any(frame.completed for frame in link.frames))


async def test_what_was_committed_for_a_queue_that_has_left(house: House) -> None:
    """It was settled here, and cannot be any more: the gateway hears that, and tells the next owner."""
    queue_id, link = await prepared(house, pb.REJECT)
    del house.queues["queue-1"]._host.registry.queues[queue_id]
    await completed(link)
    given_back = [settle for frame in link.frames for settle in frame.unsettled]
    assert given_back == [pb.Settle(queue_id=queue_id, outcome=pb.REJECT, uids=link.uids, transaction=7)]


async def test_what_was_settled_again_while_it_was_undecided(house: House) -> None:
    """A gateway that tells it again, and the store, count once between them: nothing is left behind."""
    queue_id, link = await prepared(house, pb.ACCEPT)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[:1])])
    await completed(link)
    assert await link.ready(queue_id, 1) == 0
    host = house.queues["queue-1"]._host
    assert not host.registry.queues[queue_id].unsettled  # type: ignore[attr-defined]
    assert host.account.used == 0


@pytest.mark.parametrize(("longest", "safe"), [(10.0, []), (0.0, [1])])
async def test_what_is_settled_before_it_comes_again(
    house: House, monkeypatch: pytest.MonkeyPatch, longest: float, safe: list[int]
) -> None:
    """Its publisher has not found this owner yet: if this one dies too, the next one has to hear of it; for a while."""
    monkeypatch.setattr(ticket, "_LONGEST", longest)
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.attach(queue_id, held=[FIRST + 1], again=True, stray=True)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[FIRST + 1])])
    for number in range(2):
        await link.ready(queue_id, number)
    assert settled(link) == safe


async def test_settlements_are_not_kept_for_ever(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that does not come keeps them for a while only: gateways would keep all that their clients say."""
    monkeypatch.setattr(ticket, "_LONGEST", 0.0)
    consumer, _, _ = await settled_while_some_waits(house)
    await is_safe(consumer)
