"""A large queue is read back in parts: others have their turns between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from services.common.message import format_named
from services.common.message.amqp_1_0 import added
from services.common.message.amqp_1_0.values import Symbol
from services.queue.machine import turn
from services.queue.machine.queue import Queue
from services.queue.partitions import partitions
from services.queue.partitions.partition import PartitionState
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns in which little goes; owners die."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    monkeypatch.setattr(partitions, "frames", lambda *_: ())


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries queues were given back at a time."""
    found: list[int] = []
    recover = Queue.recover

    def told(self: Queue, entries: list[Any], now: int) -> None:
        found.append(len(entries))
        recover(self, entries, now)

    monkeypatch.setattr(Queue, "recover", told)
    return found


async def filled(house: House, queue_id: int, most: int) -> None:
    """So many persistent messages."""
    link = await house.link()
    await link.publish(queue_id, [b"%d" % number for number in range(most)], persistent=True)
    await link.close()


async def annotated(house: House, queue_id: int, most: int) -> None:
    """All were delivered, and the first five given back with an annotation."""
    link = await house.link()
    await link.attach(queue_id, messages=most)
    await link.until(lambda: len(link.uids) == most)
    raw = added.written({Symbol("why"): "late"})
    modified = pb.Settle(queue_id=queue_id, outcome=pb.RESTORE, uids=link.uids[:5], annotations=raw, consumer=1)
    await link.send(settles=[modified])
    await link.ready(queue_id, 5)
    await link.close()


async def bodies(link: RawLink, queue_id: int, most: int) -> list[int]:
    """What comes, in its order."""
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) >= most)
    assert await link.ready(queue_id, 99) == 0
    return [int(body) for body in link.bodies]


@pytest.mark.parametrize(
    "said", [{}, {"max_priority": 5}, {"delayed_retry_type": "all", "delayed_retry_min": 5}, {"message_ttl": 1 << 30}]
)
async def test_in_parts(house: House, parts: list[int], said: dict[str, Any]) -> None:
    """Nothing is lost, and the order is kept."""
    queue_id = await house.declare("q", durable=True, **said)
    await filled(house, queue_id, 35)
    await another_owner(house)
    assert await bodies(await house.link(origin=1001), queue_id, 35) == list(range(35))
    assert parts == [10, 10, 10, 5]


async def test_with_annotations(house: House, parts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written into messages again, which takes long: fewer go in one turn, of a small queue too."""
    monkeypatch.setattr(turn, "REWRITTEN", 3)
    queue_id = await house.declare("q", durable=True)
    await filled(house, queue_id, 8)
    await annotated(house, queue_id, 8)
    await another_owner(house)
    link = await house.link(origin=1001)
    assert await bodies(link, queue_id, 8) == list(range(8))
    assert parts == [3, 5]
    for at, properties in enumerate(link.properties):
        expected = {"why": "late"} if at < 5 else {}
        assert added.apart(format_named("amqp-0-9").headers(properties)).annotations == expected


@pytest.mark.parametrize("limit", [{"overflow": "ring", "max_length": 3}, {"max_length": 3}])
async def test_one_that_has_too_much(
    house: House, parts: list[int], monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    """What a limit drops goes by the clock, though nobody comes; a ring looks at what is there in parts as well."""
    queue_id = await house.declare("q", durable=True)
    await filled(house, queue_id, 35)
    options, said = Registry.options, {"max_length": 3, "overflow": limit.get("overflow", "drop-head")}
    monkeypatch.setattr(Registry, "options", lambda self, each: replace(options(self, each), **said))
    await another_owner(house)
    queue = house.queues["queue-1"]._host.registry.queues
    link = await house.link(origin=1001)
    await link.until(lambda: queue_id in queue and queue[queue_id].ready_count == 3)
    assert await bodies(link, queue_id, 3) == [32, 33, 34]
    assert max(parts) == 10


async def test_what_is_held_meanwhile(house: House, parts: list[int]) -> None:
    """A gateway claims what it holds, wherever that stands."""
    queue_id = await house.declare("q", durable=True)
    await filled(house, queue_id, 35)
    link = await house.link(origin=1001)
    await link.attach(queue_id, messages=33)
    await link.until(lambda: len(link.uids) == 33)
    held = list(link.uids)
    await link.close()
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id, again=True, held=held)
    await link.until(lambda: len(link.bodies) == 2)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=held + link.uids)])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)


async def test_one_that_is_deleted_meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it, neither of what it was given back nor of the rest."""
    queue_id = await house.declare("q", durable=True)
    await filled(house, queue_id, 35)
    put_back = Registry.put_back

    def deleted(self: Registry, definition: Any, partition: Any) -> bool:
        assert partition.state is PartitionState.RECOVERING
        if queue := self.definitions.pop(definition.id, None):
            self.delete(queue)
        return put_back(self, definition, partition)

    monkeypatch.setattr(Registry, "put_back", deleted)
    await another_owner(house)
    live, link = house.store._engine._live, await house.link(origin=1001)
    await link.until(lambda: not live.batches)
    assert house.queues["queue-1"]._host.account.used == 0


@pytest.mark.parametrize("good", [0, 2])
async def test_one_that_cannot_be_given_back(house: House, monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    """All of it, from the first part or a later one: it is left out, and others of its partition are served."""
    recover, parts = Queue.recover, count()

    def fails(self: Queue, entries: list[Any], now: int) -> None:
        if next(parts) >= good:
            raise ZeroDivisionError
        recover(self, entries, now)

    monkeypatch.setattr(Queue, "recover", fails)
    names = [f"q{number}" for number in range(9)]
    numbers = [await house.declare(name, durable=True) for name in names]
    await filled(house, numbers[0], 35)
    await another_owner(house)
    link = await house.link(origin=1001)
    assert (await link.attach(numbers[0], 1)).reason == pb.OTHER
    for at, number in enumerate(numbers[1:], 2):
        assert (await link.attach(number, at)).reason == pb.NONE


@pytest.mark.parametrize("end", ["deleted", "lost"])
@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("good", [0, 2])
async def test_what_one_had_that_cannot_be_given_back(
    house: House, monkeypatch: pytest.MonkeyPatch, good: int, end: str, *, noted: bool
) -> None:
    """Its first parts, too, are kept until it is deleted, or another has its partition: then nothing is left of it, but
    for notes on disk, which the next owner drops.
    """
    recover, parts = Queue.recover, count()

    def fails(self: Queue, entries: list[Any], now: int) -> None:
        recover(self, entries, now)
        if next(parts) >= good:
            raise ZeroDivisionError

    queue_id = await house.declare("q", durable=True)
    await filled(house, queue_id, 35)
    if noted:
        await annotated(house, queue_id, 35)
    monkeypatch.setattr(Queue, "recover", fails)
    await another_owner(house)
    link, host = await house.link(origin=1001), house.queues["queue-1"]._host
    assert (await link.attach(queue_id, 1)).reason == pb.OTHER
    if end == "lost":
        host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    else:
        await link.request(9, delete=pb.DeleteRequest(queue_id=queue_id))
        live = house.store._engine._live
        await link.until(lambda: noted or not live.batches)
    await link.until(lambda: not host.account.used)
