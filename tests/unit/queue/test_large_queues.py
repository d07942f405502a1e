"""What a large queue loses at once is written down, and dropped, in parts: others have their turns between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from itertools import count
from typing import Any

import pytest

from services.common.errors import PreconditionFailed
from services.common.uid import UidSource
from services.queue.dead_letters import office as dead_letter_office
from services.queue.journal import writer as journal_writer
from services.queue.journal.ticket import Receipt
from services.queue.journal.writer import JournalWriter
from services.queue.machine import turn
from services.queue.machine.context import DeadLetter, QueueContext
from services.queue.machine.dead_letter import rewrite
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, JournalPart
from services.queue.machine.giving_back import GivingBack
from services.queue.machine.journal_draft import PartitionDraft
from services.queue.machine.message import MemoryAccount, Message
from services.queue.machine.picking import Picking
from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2
from services.rpc.router_pb2 import Message as Question
from services.rpc.router_pb2 import RouteReply
from tests.support.messages import facts
from tests.support.queue_house import House

FACTS = facts(persistent=True)


class Desk:
    """A journal writer whose frames are kept, and answered when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(journal_writer, "_DEQUEUES", 10)
        monkeypatch.setattr(journal_writer, "_OF_ONE", 4)
        self.frames: list[tuple[store_pb2.JournalFrame, asyncio.Future[store_pb2.JournalAck]]] = []
        self.writer = JournalWriter(self, UidSource(1), lambda _: None)
        self.one, self.other = self.partition(1), self.partition(2)
        self.safe: list[str] = []

    def partition(self, number: int, epoch: int = 1) -> Partition:
        draft = PartitionDraft(lambda: self.writer.touch(partition), count(1).__next__)
        partition = Partition(number, epoch, QueueContext(MemoryAccount(), draft, lambda: None))
        return partition

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]:
        done: asyncio.Future[store_pb2.JournalAck] = asyncio.get_running_loop().create_future()
        self.frames.append((frame, done))
        return done

    def drop(self, partition: Partition, *batches: int, of_each: int = 1) -> None:
        """Entries of journal batches leave their queue."""
        draft = partition.context.draft
        for batch in batches:
            part = JournalPart(batch, 0)
            draft.dequeue([Entry(Message(1, FACTS, b"", b""), place, part=part) for place in range(of_each)])

    def wait(self, name: str) -> None:
        """A name is noted as soon as all that was dropped so far is on disk."""
        receipt = Receipt(lambda: self.safe.append(name))
        self.writer.barrier(receipt)
        receipt.part_done()

    async def turn(self) -> list[int]:
        """What the frame dequeues that one more turn has brought, by batch."""
        before = len(self.frames)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(self.frames) - before in (0, 1)
        return [each.batch for frame, _ in self.frames[before:] for each in frame.dequeues]

    def answer(self) -> None:
        """The store has written the oldest frame that is open."""
        next(done for _, done in self.frames if not done.done()).set_result(store_pb2.JournalAck())


async def test_dequeues_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one comes when the store has the one before; partitions share a frame, and what waits, waits for all."""
    desk = Desk(monkeypatch)
    desk.drop(desk.one, *range(12))
    desk.wait("all of it")
    assert await desk.turn() == list(range(10))
    desk.drop(desk.other, 100)
    desk.wait("more")
    assert await desk.turn() == []
    desk.answer()
    assert desk.safe == []
    assert await desk.turn() == [10, 11, 100]
    desk.answer()
    assert await desk.turn() == []
    assert desk.safe == ["all of it", "more"]
    desk.drop(desk.one, 13)
    assert await desk.turn() == [13]


async def test_partitions_have_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large in one of them keeps no other waiting, and batches with many entries count for more."""
    desk = Desk(monkeypatch)
    desk.drop(desk.one, *range(20))
    desk.drop(desk.other, *range(100, 120), of_each=20)
    assert await desk.turn() == [0, 1, 2, 3, 4, 100, 101]


async def test_a_hand_over_waits_for_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a large queue's end is on disk before the next owner has the partition."""
    desk = Desk(monkeypatch)
    desk.drop(desk.one, *range(25))
    drained = asyncio.ensure_future(desk.writer.drained())
    written = await desk.turn()
    for _ in range(2):
        assert not drained.done()
        desk.answer()
        written += await desk.turn()
    desk.answer()
    await drained
    assert written == list(range(25))


async def test_a_part_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is written all the same, and no client is told that all of it was."""
    desk = Desk(monkeypatch)
    desk.drop(desk.one, *range(12))
    desk.wait("all of it")
    await desk.turn()
    desk.frames[0][1].set_exception(PreconditionFailed("it makes no sense"))
    await asyncio.sleep(0)
    assert await desk.turn() == [10, 11]
    desk.answer()
    assert await desk.turn() == []
    assert desk.safe == []


async def test_purge_of_a_large_queue(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes in parts, between which others have their turns, and all of it is counted."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    queue_id = await house.declare("q", durable=True)
    link, queue = await house.link(), house.queues["queue-1"]._host.registry.queues[queue_id]
    await link.publish(queue_id, [b"x"] * 95, persistent=True)
    purge, parts, turns = partial(Picking.purge, queue.picking), list[int](), list[int]()

    def noted(most: int, before: int) -> int:
        assert before == 115
        parts.append(purge(most, before))
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(parts)))
        return parts[-1]

    monkeypatch.setattr(Picking, "purge", lambda _, most, before: noted(most, before))
    asked = pb.QueueRequest(id=1, purge=pb.PurgeRequest(queue_id=queue_id))
    await link.send(requests=[asked], publishes=[link.batch(queue_id, [b"y"] * 20)])
    await link.until(lambda: any(frame.replies for frame in link.frames))
    (reply,) = [reply for frame in link.frames for reply in frame.replies]
    assert reply.reason == pb.NONE
    assert (reply.message_count, sum(parts), queue.ready_count) == (115, 115, 0)
    assert turns == list(range(1, len(parts) + 1))
    assert max(parts) == 10


async def test_a_purge_is_answered_when_it_is_on_disk(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then an owner that died would have the next one bring everything back."""
    queue_id = await house.declare("q", durable=True)
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"x"] * 5, persistent=True)
    journal, written = host.writer._journal, list[tuple[store_pb2.JournalFrame, asyncio.Future[Any]]]()
    append, loop = journal.append, asyncio.get_running_loop()

    def held(frame: store_pb2.JournalFrame) -> asyncio.Future[Any]:
        written.append((frame, loop.create_future()))
        return written[-1][1]

    monkeypatch.setattr(journal, "append", held)
    purge = loop.create_task(link.request(1, purge=pb.PurgeRequest(queue_id=queue_id)))
    await link.until(lambda: written)
    assert await link.ready(queue_id, 2) == 0
    assert not purge.done()
    for frame, answer in written:
        answer.set_result(await append(frame))
    assert (await purge).message_count == 5


async def test_a_purge_that_cannot_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is told."""
    queue_id = await house.declare("q", durable=True)
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"x"] * 5, persistent=True)

    def refuse(frame: store_pb2.JournalFrame) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        answer.set_exception(PreconditionFailed("it makes no sense"))
        return answer

    monkeypatch.setattr(host.writer._journal, "append", refuse)
    reply = await link.request(1, purge=pb.PurgeRequest(queue_id=queue_id))
    assert reply.reason == pb.OTHER
    assert "may come back" in reply.text


async def test_the_partition_leaves_while_a_queue_is_purged(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is told so, and asks the next owner."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"x"] * 95)
    queue = host.registry.queues[queue_id]
    purge, partition = partial(Picking.purge, queue.picking), host.registry.partitions[queue.options.partition]

    def leaves(most: int, before: int) -> int:
        host.registry.suspend(partition)
        return purge(most, before)

    monkeypatch.setattr(Picking, "purge", lambda _, most, before: leaves(most, before))
    reply = await link.request(1, purge=pb.PurgeRequest(queue_id=queue_id))
    assert reply.reason == pb.NOT_OWNER
    assert queue.ready_count == 85


async def test_a_great_many_dead_letters(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are opened some in a turn; those that are not are known to be there all the same, and all go in order."""
    monkeypatch.setattr(dead_letter_office, "_OPEN_AT_ONCE", 10)
    source = await house.declare("source", dead_letter_exchange="", dead_letter_routing_key="target")
    target = await house.declare("target")
    link, service = await house.link(), house.queues["queue-1"]
    office, partition = service._partitions._office, service._host.registry.partition_of(source)
    assert partition
    await link.attach(source)
    await link.publish(source, [b"%d" % number for number in range(95)])
    await link.until(lambda: len(link.uids) == 95)
    turn, opened, route = 0, list[int](), office._routes.route
    there = asyncio.Event()

    async def turns() -> None:
        nonlocal turn
        while len(opened) < 95:
            turn += 1
            await asyncio.sleep(0)

    def noted(letter: DeadLetter) -> tuple[bytes, dict[str, object]]:
        opened.append(turn)
        return rewrite(letter)

    async def waits(questions: list[Question]) -> RouteReply:
        await there.wait()
        return await route(questions)

    monkeypatch.setattr(dead_letter_office, "rewrite", noted)
    monkeypatch.setattr(office._routes, "route", waits)
    counting = asyncio.ensure_future(turns())
    await link.send(settles=[pb.Settle(queue_id=source, outcome=pb.REJECT, uids=link.uids)])
    await link.until(lambda: opened)
    await asyncio.sleep(0.05)
    assert [letter.entry.message.uid for letter in office.letters_of(partition)] == link.uids
    assert office.sends(partition)
    there.set()
    await link.attach(target, 2)
    await link.until(lambda: len(link.uids) == 190)
    await counting
    assert link.bodies[95:] == link.bodies[:95]
    assert max(Counter(opened).values()) == 10
    assert not office.letters_of(partition)


async def test_a_great_many_have_expired(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A get and a consumer have what is behind them, when they are dropped, some in each turn."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    monkeypatch.setattr(turn, "SCATTERED", 10)
    queue_id = await house.declare("q")
    link, registry = await house.link(), house.queues["queue-1"]._host.registry
    now, queue, parts = registry.now(), registry.queues[queue_id], list[int]()
    discard = Entries.discard

    def noted(self: Entries, entries: list[Entry], reason: str, at: int) -> None:
        parts.append(len(entries))
        discard(self, entries, reason, at)

    monkeypatch.setattr(Entries, "discard", noted)
    await link.publish(queue_id, [b"x"] * 95, time_ms=now, ttl_ms=200)
    await link.publish(queue_id, [b"1", b"2"])
    registry.now = lambda: now + 200  # type: ignore[assignment, method-assign]
    reply = await link.request(1, get=pb.GetRequest(queue_id=queue_id, settled=True))
    assert list(reply.message.bodies) == [b"1"]
    assert queue.ready_count == 1
    await link.publish(queue_id, [b"x"] * 95, time_ms=now, ttl_ms=0)
    await link.publish(queue_id, [b"3"])
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 2)
    assert link.bodies == [b"2", b"3"]
    assert (max(parts), sum(parts)) == (10, 190)


@pytest.mark.parametrize("again", [False, True])
async def test_a_great_many_come_back(house: House, monkeypatch: pytest.MonkeyPatch, *, again: bool) -> None:
    """What a gateway held that is gone, or has come again without it, goes to others in order, and back in turns."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    queue_id = await house.declare("q")
    gone, other = await house.link(tells=again), await house.link(origin=1001)
    await gone.attach(queue_id, messages=95)
    await gone.publish(queue_id, [b"%d" % number for number in range(95)])
    await gone.until(lambda: len(gone.bodies) == 95)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    release, parts, turns = partial(GivingBack.release, queue.giving_back), list[int](), list[int]()

    def noted(uids: list[int], *arguments: Any, **more: Any) -> None:
        parts.append(len(uids))
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(parts)))
        release(uids, *arguments, **more)

    monkeypatch.setattr(GivingBack, "release", lambda _, uids, *more, **named: noted(uids, *more, **named))
    await other.attach(queue_id)
    await other.publish(queue_id, [b"95"])
    await other.until(lambda: other.bodies == [b"95"])
    await gone.close()
    if again:
        later = await house.link(tells=True)
        await later.attach(queue_id, messages=0, again=True)
    await other.until(lambda: len(other.bodies) == 96)
    assert other.bodies[1:] == [b"%d" % number for number in range(95)]
    assert (parts, turns) == ([10] * 9 + [5], list(range(1, 11)))


async def test_a_great_many_come_back_each_to_a_place(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each has to find its place, fewer go in one turn."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    monkeypatch.setattr(turn, "SCATTERED", 5)
    queue_id = await house.declare("q", table={"qpid.queue_sort_key": "k"})
    gone, other, parts = await house.link(), await house.link(origin=1001), list[int]()
    await gone.attach(queue_id, messages=95)
    await gone.publish(queue_id, [b"%d" % number for number in range(95)])
    await gone.until(lambda: len(gone.bodies) == 95)
    release = GivingBack.release

    def noted(self: GivingBack, uids: list[int], *arguments: Any, **more: Any) -> None:
        parts.append(len(uids))
        release(self, uids, *arguments, **more)

    monkeypatch.setattr(GivingBack, "release", noted)
    await gone.close()
    await other.attach(queue_id)
    await other.until(lambda: len(other.bodies) == 95)
    assert other.bodies == [b"%d" % number for number in range(95)]
    assert parts == [5] * 19


async def test_a_great_many_are_due_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock delivers all of them, some in each turn, to a consumer that says nothing meanwhile."""
    monkeypatch.setattr(turn, "SCATTERED", 10)
    queue_id = await house.declare("q", table={"holdOnPublishEnabled": True})
    link = await house.link()
    await link.attach(queue_id)
    soon = house.queues["queue-1"]._host.now() + 300
    await link.publish_facts(queue_id, [b"x"] * 20, FACTS._replace(not_before=soon))
    assert not link.bodies
    await link.until(lambda: len(link.bodies) == 20, seconds=10)
