"""A message whose taking failed is not taken for safe when it comes again: it is there once, or twice at worst."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.common.errors import PreconditionFailed
from services.queue.host import Host
from services.queue.journal import writer as journal_writer
from services.queue.links import publishing
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2
from tests.support.queue_house import House
from tests.unit.queue.test_once_moves import ONCE, publish
from tests.unit.queue.test_sent_again import FIRST, next_owner, queues_of_one_partition, ready

REFUSED = [(0, 1, pb.OTHER)]
Breaks = Callable[[pytest.MonkeyPatch, Host], None]


def _fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError


def _frame_not_made(monkeypatch: pytest.MonkeyPatch, _host: Host) -> None:
    monkeypatch.setattr(journal_writer, "add_content", _fails)


def _frame_refused(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    def refuse(_: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.set_exception(PreconditionFailed("it makes no sense"))
        return answer

    monkeypatch.setattr(host.writer._journal, "append", refuse)


def _batch_not_offered(monkeypatch: pytest.MonkeyPatch, _host: Host) -> None:
    monkeypatch.setattr(publishing._Offer, "close", _fails)


@pytest.mark.parametrize("breaks", [_frame_not_made, _frame_refused, _batch_not_offered])
async def test_what_was_not_written(house: House, monkeypatch: pytest.MonkeyPatch, breaks: Breaks) -> None:
    """Its publisher hears that it is not safe; if it has not, and sends it again, it is written."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    with monkeypatch.context() as broken:
        breaks(broken, house.queues["queue-1"]._host)
        await link.publish(queue_id, [b"1"], uids=[FIRST + 1], persistent=True)
    assert link.refusals() == REFUSED
    await link.close()
    again = await house.link()
    await again.publish(queue_id, [b"1"], uids=[FIRST + 1], persistent=True, resent=True)
    await again.publish(queue_id, [b"2"], uids=[FIRST + 2], persistent=True)
    assert not again.refusals()
    await next_owner(house)
    assert await ready(await house.link(), [queue_id]) == [2]


@pytest.mark.parametrize("breaks", [_frame_not_made, _frame_refused, _batch_not_offered])
async def test_a_key_of_what_was_not_written(house: House, monkeypatch: pytest.MonkeyPatch, breaks: Breaks) -> None:
    """Is free again: a copy that is sent after the refusal is written, since the first one is on no disk."""
    queue_id = await house.declare("q", durable=True, table=ONCE)
    link = await house.link(tells=True)
    with monkeypatch.context() as broken:
        breaks(broken, house.queues["queue-1"]._host)
        await publish(link, queue_id, "a")
    assert link.refusals() == REFUSED
    await link.close()
    again = await house.link(origin=1001, tells=True)
    await publish(again, queue_id, "a")
    assert not again.refusals()
    await next_owner(house)
    assert await ready(await house.link(origin=1002), [queue_id]) == [1]


async def test_floors_of_a_frame_that_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame behind it, under way already, has left them out: they are written at once, by themselves."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    journal, link = house.queues["queue-1"]._host.writer._journal, await house.link()
    works, frames = journal.append, list[store_pb2.JournalFrame]()
    first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def append(frame: store_pb2.JournalFrame) -> asyncio.Future[Any]:
        frames.append(frame)
        return first if len(frames) == 1 else works(frame)

    monkeypatch.setattr(journal, "append", append)
    await link.send(publishes=[link.batch(queue_id, [b"1"], uids=[FIRST + 1], persistent=True)])
    await link.ready(queue_id, 1)
    await link.publish(queue_id, [b"2"], uids=[FIRST + 2], persistent=True)
    first.set_exception(PreconditionFailed("it makes no sense"))
    await link.until(link.refusals)
    assert [[floor.uid <= FIRST + 2 for floor in frame.floors] for frame in frames] == [[True], [], [True]]


@pytest.mark.parametrize("too_late", [False, True])
async def test_a_queue_that_failed(house: House, monkeypatch: pytest.MonkeyPatch, too_late: bool) -> None:
    """One that failed, when it had enlisted the message or before, takes it when it comes again; the other does not."""
    faulty, good = await queues_of_one_partition(house, 2)
    works = Queue.publish

    def fails(self: Queue, *args: Any, **more: Any) -> Any:
        taken = works(self, *args, **more) if too_late or self.options.queue_id == good else []
        if self.options.queue_id == faulty:
            raise ZeroDivisionError
        return taken

    link = await house.link()
    with monkeypatch.context() as broken:
        broken.setattr(Queue, "publish", fails)
        for queues, uid in (([faulty], 1), ([good, faulty], 2)):
            await link.publish(queues, [b"1"], uids=[FIRST + uid], persistent=True)
    assert link.refusals() == REFUSED * 2
    await link.close()
    again = await house.link()
    for queues, uid in (([faulty], 1), ([good, faulty], 2)):
        await again.publish(queues, [b"1"], uids=[FIRST + uid], persistent=True, resent=True)
    for _ in range(2):
        assert await ready(again, [faulty, good]) == [4 if too_late else 2, 1]
        await next_owner(house)
        again = await house.link()


async def test_what_comes_again_waits_for_a_frame_that_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its publisher is not left to wait: it cannot be known whether it is safe."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.publish(queue_id, [b"1"], uids=[FIRST + 1], persistent=True)
    monkeypatch.setattr(journal_writer, "add_content", _fails)
    new = link.batch(queue_id, [b"2"], uids=[FIRST + 2], persistent=True)
    again = link.batch(queue_id, [b"1"], uids=[FIRST + 1], persistent=True, resent=True)
    await link.send(publishes=[new, again])
    await link.until(lambda: len(link.done()) == 3)
    assert link.refusals() == REFUSED * 2


async def test_settlements_in_a_frame_that_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not said to be safe, and later ones are."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    link = await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1", b"2"], persistent=True)
    await link.until(lambda: len(link.uids) == 2)
    for uid, works in zip(link.uids, (False, True), strict=True):
        with monkeypatch.context() as broken:
            if not works:
                broken.setattr(journal_writer.JournalWriter, "_add_changes", _fails)
            await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=[uid])])
            await link.ready(queue_id, uid)
    await link.send(heard=len(link.frames))
    await link.publish(queue_id, [b"3"], persistent=True)  # its answer comes behind theirs
    assert [number for frame in link.frames for number in frame.settled] == [2]


async def test_what_has_waited_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that had to wait for its partition, and cannot be taken then, is refused."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    partition = _on_its_way(house, queue_id)
    link = await house.link()
    await link.send(publishes=[link.batch(queue_id, [b"1"], persistent=True)])
    await link.until(lambda: partition.waiting)
    with monkeypatch.context() as broken:
        broken.setattr(Registry, "awaited", _fails)
        partition.replay()
    await link.until(link.done)
    assert link.refusals() == REFUSED


async def test_what_of_a_batch_has_waited_is_one_content(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """However mixed the batch is: a batch of a thousand runs that waits does not write a thousand contents."""
    (queue_id,) = await queues_of_one_partition(house, 1)
    registry = house.queues["queue-1"]._host.registry
    queues = dict(registry.queues)
    partition = _on_its_way(house, queue_id)
    link = await house.link()
    await link.send(publishes=[_mixed(link.batch(queue_id, [b"1", b"2", b"3", b"4"]))])
    await link.until(lambda: partition.waiting)
    assert len(partition.waiting) == 1
    written: list[Any] = []
    writes = journal_writer.add_content
    monkeypatch.setattr(journal_writer, "add_content", lambda *args: written.append(args) or writes(*args))
    registry.queues.update(queues)
    partition.state = PartitionState.SERVING
    partition.replay()
    await link.until(link.done)
    assert not link.refusals()
    assert len(written) == 1
    assert await ready(link, [queue_id]) == [4]


def _mixed(raw: bytes) -> bytes:
    """The same messages, every other one persistent."""
    batch = pb.PublishBatch.FromString(raw)
    (run,) = batch.runs
    del batch.runs[:]
    for number in range(len(batch.uids)):
        one = batch.runs.add()
        one.CopyFrom(run)
        one.count, one.persistent = 1, number % 2 == 0
    return batch.SerializeToString()


def _on_its_way(house: House, queue_id: int) -> Partition:
    registry = house.queues["queue-1"]._host.registry
    partition = registry.partition_of(queue_id)
    assert partition
    registry.queues.clear()
    partition.state = PartitionState.RECOVERING
    return partition
