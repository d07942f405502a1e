"""A queue process that is told of queues with two slots."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path

import pytest

from services.common.grpc_channel import connect
from services.common.topology.slots import SlotName
from services.rpc import metrics_pb2 as pb_metrics
from services.rpc import queue_pb2 as pb
from services.rpc.metrics_pb2_grpc import MetricsStub
from tests.support.collected import collect
from tests.support.queue_client import Client
from tests.support.queue_house import House
from tests.support.second_slots import second_slot, tell_second_slots


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """Store, router and one queue process."""
    built = House(tmp_path)
    tell_second_slots(monkeypatch, built.settings.partitions)
    await built.start()
    yield built
    await built.stop()


async def test_slots_are_queues_of_their_own(house: House) -> None:
    """A message may be in both; what is purged in one, and its consumers, are not the other's."""
    first = await house.declare("q")
    second = second_slot(first)
    link = await house.link()
    await link.publish([first, second], [b"both"])
    await link.publish(second, [b"one"])
    assert [await link.ready(first, 1), await link.ready(second, 2)] == [1, 2]
    await link.request(3, purge=pb.PurgeRequest(queue_id=first))
    await link.attach(second)
    await link.until(lambda: link.bodies == [b"both", b"one"])
    assert [await link.ready(first, 4), await link.ready(second, 5)] == [0, 0]


async def test_slots_are_measured_together(house: House) -> None:
    """One sample of a queue: two of the same labels are none that Prometheus takes."""
    first, other = await house.declare("q"), await house.declare("other")
    link = await house.link()
    await link.publish([first, second_slot(first)], [b"both"])
    await link.publish([second_slot(first), other], [b"one", b"more"])
    samples = list[tuple[str, ...]]()
    async with connect(house.settings.address_of("queue-1")) as channel:
        async for said in MetricsStub(channel).Collect(pb_metrics.CollectRequest(per_object=True), timeout=30):
            for family in [each for each in said.families if each.labels]:
                samples += zip([family.name] * 99, *[iter(family.label_values)] * len(family.labels), strict=False)
    assert not [labels for labels, times in Counter(samples).items() if times > 1]
    found = (await collect(house.settings.address_of("queue-1"), per_object=True))[1]
    ready = {name: value for name, value in found.items() if name[0] == "hopline_queue_messages_ready"}
    assert sorted(ready.values()) == [2, 4]
    assert found["hopline_queues",] == 2


async def test_slots_are_kept_apart_on_disk(house: House) -> None:
    """Each is in its own partition, and the next owner finds in it what was published there and not settled."""
    first = await house.declare("q", durable=True)
    second = second_slot(first)
    partitions = [house.topology.by_name[SlotName("/", "q", slot)].partition for slot in (0, 1)]
    assert partitions[0] != partitions[1]
    link = await house.link()
    await link.publish([first, second], [b"both"], persistent=True)
    await link.publish(second, [b"one"], persistent=True)
    await link.attach(first)
    await link.until(lambda: link.uids)
    await link.send(settles=[pb.Settle(queue_id=first, outcome=pb.ACCEPT, uids=link.uids)])
    await link.publish(first, [b"after"], persistent=True)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")
    later = await house.link("queue-2", origin=1001)
    for number, queue_id in enumerate((second, first), 1):
        await later.attach(queue_id, number)
        await later.until(lambda queue_id=queue_id: len(later.bodies) == (3 if queue_id == first else 2))
    assert later.bodies == [b"both", b"one", b"after"]


@pytest.mark.parametrize("number", [0, 1])
async def test_a_queue_goes_with_all_slots(house: House, number: int) -> None:
    """Whichever is asked to delete the queue, neither is there any more."""
    first = await house.declare("q")
    slots = [first, second_slot(first)]
    link = await house.link()
    reply = await link.request(1, delete=pb.DeleteRequest(queue_id=slots[number]))
    assert reply.reason == pb.NONE
    await link.until(lambda: not house.topology.by_name)
    replies = [await link.request(2 + at, inspect=pb.InspectRequest(queue_id=each)) for at, each in enumerate(slots)]
    assert [reply.reason for reply in replies] == [pb.UNKNOWN_QUEUE] * 2


async def test_gateways_follow_each_slot(house: House) -> None:
    """What is published to a slot comes from it once and in order, while slots pass from one process to another."""
    first = await house.declare("q", durable=True)
    slots = [first, second_slot(first)]
    client = Client(house, "client")
    await client.start()
    try:
        consumers, confirmed = [client.consume(each) for each in slots], list[bytes]()
        sent = await _published_while_moving(house, client, slots, confirmed)
        async with asyncio.timeout(60):
            while client.under_way or sum(len(each.received) for each in consumers) < sum(map(len, sent)):
                await asyncio.sleep(0.01)
        assert [each.received for each in consumers] == sent
        assert sorted(confirmed) == sorted(chain(*sent))
    finally:
        await client.stop()


async def _published_while_moving(
    house: House, client: Client, slots: list[int], confirmed: list[bytes]
) -> list[list[bytes]]:
    sent: list[list[bytes]] = [[] for _ in slots]
    for turn in range(60):
        for number, queue_id in enumerate(slots):
            body = b"%d %d" % (number, turn)
            sent[number].append(body)
            client.publish(queue_id, [body], confirmed, persistent=True)
        await asyncio.sleep(0.01)
        if turn == 20:
            await house.start_queue("queue-2")
        if turn == 40:
            await house.queues.pop("queue-1").stop()
    return sent
