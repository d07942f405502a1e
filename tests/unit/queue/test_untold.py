"""What is sent again and may be refused waits for gateways that have not said yet what their clients hold."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import AsyncMock

import pytest

from services.common.clients.topology import TopologyClient
from services.common.topology.slots import SlotId
from services.common.watchers import SILENT_KIND
from services.queue.host import Host
from services.queue.links import untold
from services.queue.partitions import partitions
from services.queue.partitions.partition import PartitionState
from services.queue.partitions.partitions import Partitions
from services.rpc import queue_pb2 as pb
from services.rpc.store_pb2 import Record
from tests.support.queue_house import House, RawLink

FIRST = (1000 << 39) + 1
SLOW = 1001  # the origin of the gateway that is slow, or not known yet


async def _slow(house: House) -> RawLink:
    return await house.link(origin=SLOW, tells=True)


async def _host(house: House) -> Host:
    """Of the next owner, which serves its partitions and expects nobody who is not there."""
    await house.queues.pop("queue-1").stop()
    return (await house.start_queue("queue-1"))._host


async def _sent_again(house: House, queue_id: int, *, immediate: bool = True, uid: int = FIRST) -> RawLink:
    link = await house.link()
    raw = link.batch(queue_id, [b"again"], uids=[uid], persistent=True, immediate=immediate, resent=True)
    await link.send(publishes=[raw])
    return link


async def _says(house: House, slow: RawLink, queue_id: int, held: list[int]) -> None:
    """What its clients hold, and that this is all."""
    number = house.topology.queues[queue_id].partition
    partition = house.queues["queue-1"]._host.registry.partitions[number]
    attach = pb.AttachConsumer(consumer=7, queue_id=queue_id, held=held, again=True, stray=True)
    await slow.send(attaches=[attach], told=[pb.Told(partition=number, epoch=partition.epoch)])


async def _waits(host: Host, link: RawLink) -> None:
    await link.until(lambda: host.untold)
    await asyncio.sleep(0.1)
    assert not link.done()


@pytest.mark.parametrize("held", [True, False])
async def test_an_immediate_message(house: House, *, held: bool) -> None:
    """It is taken if a client has it, and returned if none has."""
    queue_id = await house.declare("q", durable=True)
    host = await _host(house)
    slow = await _slow(house)
    link = await _sent_again(house, queue_id)
    await _waits(host, link)
    await _says(house, slow, queue_id, [FIRST] if held else [])
    await link.until(link.done)
    assert link.refusals() == ([] if held else [(0, 1, pb.NO_CONSUMERS)])
    assert list(host.registry.queues[SlotId(queue_id)].unsettled) == ([FIRST] if held else [])
    assert not host.untold


async def test_of_a_consumer_that_has_acknowledged_it(house: House) -> None:
    """Nobody else is given it, though somebody could take it at once."""
    queue_id = await house.declare("q", durable=True)
    host = await _host(house)
    slow = await _slow(house)
    other = await house.link(origin=1002)
    await other.attach(queue_id)
    link = await _sent_again(house, queue_id)
    await _waits(host, link)
    await _says(house, slow, queue_id, [FIRST])
    await slow.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[FIRST])])
    await link.until(link.done)
    assert (await link.ready(queue_id, 1), link.refusals(), other.bodies) == (0, [], [])


async def test_a_message_for_a_full_queue(house: House) -> None:
    """The former owner had room for it, and a client has it."""
    queue_id = await house.declare("q", durable=True, max_length=1, overflow="reject-publish")
    await (await house.link()).publish(queue_id, [b"there"], uids=[FIRST], persistent=True)
    host = await _host(house)
    slow = await _slow(house)
    link = await _sent_again(house, queue_id, immediate=False, uid=FIRST + 1)
    await _waits(host, link)
    await _says(house, slow, queue_id, [FIRST + 1])
    await link.until(link.done)
    assert (link.refusals(), list(host.registry.queues[SlotId(queue_id)].unsettled)) == ([], [FIRST + 1])


async def _has_a_place(house: House) -> TopologyClient:
    """The slow gateway's, before it finds a process that has just started."""
    place = TopologyClient(house._client, f"gateway-{SLOW}", "gateway", f"{SLOW}.")
    await place.start()
    return place


async def _waits_for_a_place(house: House) -> tuple[int, TopologyClient, RawLink]:
    """A queue, the slow gateway's place, and a link on which a message waits for what that gateway says."""
    queue_id = await house.declare("q", durable=True)
    place = await _has_a_place(house)
    host = await _host(house)
    link = await _sent_again(house, queue_id)
    await _waits(host, link)
    return queue_id, place, link


async def test_a_gateway_that_finds_a_new_process_late(house: House) -> None:
    """A process that has just started waits for the gateways that the routers know."""
    queue_id, place, link = await _waits_for_a_place(house)
    await _says(house, await _slow(house), queue_id, [FIRST])
    await link.until(link.done)
    assert link.refusals() == []
    await place.stop()


async def test_nothing_is_delivered_before_it_has_spoken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process waits a moment for it, as for those that are there: what its clients hold is not for others."""
    queue_id = await house.declare("q", durable=True)
    await (await house.link()).publish(queue_id, [b"held", b"new"], uids=[FIRST, FIRST + 1], persistent=True)
    place = await _has_a_place(house)
    monkeypatch.setattr(partitions, "_SHORTLY", 3600.0)
    monkeypatch.setattr(Partitions, "_hand_over", AsyncMock(return_value=[]))  # as when it was killed
    await house.queues.pop("queue-1").stop()
    monkeypatch.setattr(untold, "_FIRST_WORDS", 0.0)
    starting = asyncio.create_task(house.start_queue("queue-1"))
    other = await house.link(origin=1002)
    await other.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1 << 30)])
    registry = house.queues["queue-1"]._host.registry
    await other.until(lambda: len(registry.partitions) == house.settings.partitions)
    await asyncio.sleep(0.1)
    slow = await _slow(house)
    for number, partition in registry.partitions.items():
        assert partition.state is PartitionState.RECOVERING
        its = [pb.AttachConsumer(consumer=7, queue_id=queue_id, held=[FIRST], again=True, stray=True)]
        mine = number == house.topology.queues[queue_id].partition
        await slow.send(attaches=its if mine else [], told=[pb.Told(partition=number, epoch=partition.epoch)])
    await starting
    await other.until(lambda: other.bodies)
    assert other.bodies == [b"new"]
    await place.stop()


async def test_a_gateway_that_leaves_before_it_finds_a_new_process(house: House) -> None:
    """Nobody waits for it: its clients are gone."""
    _, place, link = await _waits_for_a_place(house)
    await place.stop()
    await link.until(link.done)
    assert link.refusals() == [(0, 1, pb.NO_CONSUMERS)]


async def test_a_gateway_that_has_stood_still_for_so_long_that_it_has_no_place(house: House) -> None:
    """It is waited for while the routers have it on record."""
    queue_id = await house.declare("q", durable=True)
    value = json.dumps({"member": "gateway", "role": "gateway", "connections": f"{SLOW}."}).encode()
    on_record = Record(kind=SILENT_KIND, key="gateway", value=value, transient=True)
    await house._client.put_records([on_record], [])
    host = await _host(house)
    link = await _sent_again(house, queue_id)
    await _waits(host, link)
    await house._client.put_records([], [on_record])
    await link.until(link.done)
    assert link.refusals() == [(0, 1, pb.NO_CONSUMERS)]


async def test_what_comes_behind_it(house: House) -> None:
    """It waits as well, and what others publish: nothing of a queue is overtaken."""
    queue_id = await house.declare("q", durable=True)
    host = await _host(house)
    slow = await _slow(house)
    link, other = await _sent_again(house, queue_id), await house.link(origin=1002)
    await link.until(lambda: host.untold)
    await other.send(publishes=[other.batch(queue_id, [b"other"])])
    await link.send(publishes=[link.batch(queue_id, [b"behind"], uids=[FIRST + 1])])
    await asyncio.sleep(0.1)
    assert not [*link.done(), *other.done()]
    await _says(house, slow, queue_id, [])
    await link.until(lambda: len(link.done()) == 2 and other.done())
    assert await link.ready(queue_id, 1) == 2


@pytest.mark.parametrize("how", ["goes", "stands still"])
async def test_not_for_ever(house: House, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Of a gateway that is gone, or says nothing, clients are lost or will be."""
    queue_id = await house.declare("q", durable=True)
    host = await _host(house)
    slow = await _slow(house)
    link = await _sent_again(house, queue_id)
    await _waits(host, link)
    if how == "goes":
        await slow.close()
    else:
        monkeypatch.setattr(untold, "_AT_MOST", 0.0)
    await link.until(link.done)
    assert link.refusals() == [(0, 1, pb.NO_CONSUMERS)]


async def test_nothing_waits_where_nobody_may_claim(house: House) -> None:
    """Of a queue that takes whatever comes, of one that had no owner before, and where all have spoken."""
    immediate, other = await house.declare("q", durable=True), await house.declare("r", durable=True)
    slow = await _slow(house)
    link = await _sent_again(house, immediate)
    await link.until(link.done)
    await slow.close()
    host = await _host(house)
    slow = await _slow(house)
    link = await _sent_again(house, other, immediate=False)
    await link.until(link.done)
    await _says(house, slow, immediate, [])
    await asyncio.sleep(0.1)
    link = await _sent_again(house, immediate)
    await link.until(link.done)
    assert not host.untold
