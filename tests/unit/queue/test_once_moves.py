"""What a queue has taken once is known to the next owner, however it came by the partition."""

from __future__ import annotations

from unittest.mock import Mock, call

import pytest

from services.common.message.amqp_0_9 import compose
from services.queue.machine.features.window import Window
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner
from tests.unit.queue.test_policies import policy

ONCE = {"x-message-deduplication": True}


def properties(key: str) -> bytes:
    """Of a message with this id."""
    return compose({"message-id": key}, {}, persistent=False, priority=0)


async def publish(link: RawLink, queue_id: int, *names: str, persistent: bool = True) -> None:
    """A message for each of these ids, one after the other, done."""
    for name in names:
        await link.publish(queue_id, [name.encode()], persistent=persistent, properties=properties(name))


async def consumed(house: House, queue_id: int) -> RawLink:
    """Two persistent messages and a transient one came, and were acknowledged; the link that they came by."""
    link = await house.link(tells=True)
    await publish(link, queue_id, "a", "b")
    await publish(link, queue_id, "c", persistent=False)
    await link.attach(queue_id)
    await link.until(lambda: len(link.uids) == 3)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.ready(queue_id, 1)
    await link.close()
    return link


def window_of(house: House, queue_id: int) -> Window:
    """Of the queue, here."""
    once = house.queues["queue-1"]._host.registry.queues[queue_id]._admission._once
    assert once
    return once.window


@pytest.mark.parametrize("durable", [False, True])
async def test_a_move(house: House, durable: bool) -> None:
    """All keys are known over two moves, also of what was transient; what is new is taken."""
    queue_id = await house.declare("q", durable=durable, table=ONCE)
    await consumed(house, queue_id)
    for origin in (1001, 1002):
        await another_owner(house)
        link = await house.link(origin=origin, tells=True)
        await publish(link, queue_id, "a", "b", "d")
        await publish(link, queue_id, "c", persistent=False)
        assert await link.ready(queue_id, 1) == 1
        assert not link.refusals()
        assert len(window_of(house, queue_id)) == 4
        await link.close()


async def test_a_transient_one_that_has_moved(house: House) -> None:
    """Does not stand for a persistent one, though its key went to the journal: it may be lost."""
    queue_id, link = await house.declare("q", durable=True, table=ONCE), await house.link(tells=True)
    await publish(link, queue_id, "a", persistent=False)
    await link.close()
    await another_owner(house)
    link = await house.link(origin=1001, tells=True)
    await publish(link, queue_id, "a", persistent=False)
    assert await link.ready(queue_id, 1) == 1
    await publish(link, queue_id, "a")
    assert await link.ready(queue_id, 2) == 2
    await publish(link, queue_id, "a")
    assert await link.ready(queue_id, 3) == 2


async def test_a_kill(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of what was persistent are in the journal, though the messages are not; a transient one's was lost."""
    queue_id = await house.declare("q", durable=True, table=ONCE)
    await consumed(house, queue_id)
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    await another_owner(house)
    link = await house.link(origin=1001, tells=True)
    await publish(link, queue_id, "a", "b", "c")
    await link.attach(queue_id)
    await link.until(lambda: link.bodies)
    assert link.bodies == [b"c"]


@pytest.mark.parametrize("committed", [True, False])
async def test_a_transaction(house: House, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    """Counts when it is committed: one that has a key by then goes before it. What comes of it is in the journal."""
    queue_id = await house.declare("q", durable=True, table=ONCE)
    link = await house.link(tells=True)
    for name in ("a", "b"):
        raw = link.batch(queue_id, [name.encode()], transaction=5, persistent=True, properties=properties(name))
        await link.send(publishes=[raw])
    await link.send(transactions=[pb.TransactionStep(transaction=5)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    await publish(link, queue_id, "a")
    step, parts = pb.TransactionStep.ABORT, next(each.parts for frame in link.frames for each in frame.prepared)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    queue._entries.record = record = Mock(on=True, places_for=queue.record.places_for)
    if committed:
        assert (await house.queues["queue-1"]._store.commit_transaction(5, parts)).committed
        step = pb.TransactionStep.COMPLETE
    await link.send(transactions=[pb.TransactionStep(transaction=5, step=step)])
    await link.until(lambda: any(5 in frame.completed for frame in link.frames))
    assert await link.ready(queue_id, 1) == (2 if committed else 1)
    first, second = (1000 << 39) + 1, (1000 << 39) + 2
    assert record.dropped.mock_calls == ([call(range(first, second), "duplicate")] if committed else [])
    assert [each for each in record.persisted.mock_calls if each.args[0]] == ([call([second])] if committed else [])
    await link.close()
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    await another_owner(house)
    link = await house.link(origin=1001, tells=True)
    await publish(link, queue_id, "a", "b")
    assert await link.ready(queue_id, 1) == 2
    assert len(window_of(house, queue_id)) == 2


async def test_two_transactions(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are prepared with one key: the first that is committed has it, the next owner knows that one alone."""
    queue_id = await house.declare("q", durable=True, table=ONCE)
    link = await house.link(tells=True)
    for number in (5, 6):
        raw = link.batch(queue_id, [b"%d" % number], transaction=number, persistent=True, properties=properties("a"))
        await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=number)])
    await link.until(lambda: len([each for frame in link.frames for each in frame.prepared]) == 2)
    parts = {each.transaction: each.parts for frame in link.frames for each in frame.prepared}
    for number in (6, 5):
        assert (await house.queues["queue-1"]._store.commit_transaction(number, parts[number])).committed
        step = pb.TransactionStep(transaction=number, step=pb.TransactionStep.COMPLETE)
        await link.send(transactions=[step])
        await link.until(lambda number=number: any(number in frame.completed for frame in link.frames))
    assert await link.ready(queue_id, 1) == 1
    await link.close()
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    await another_owner(house)
    link = await house.link(origin=1001, tells=True)
    await publish(link, queue_id, "a")
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    assert [entry.message.body for entry in queue.entries()] == [b"6"]
    assert len(window_of(house, queue_id)) == 1


async def test_what_is_moved(house: House) -> None:
    """Dead letters, and what is moved by hand, come from who tells nothing of consumers: they are taken."""
    queue_id = await house.declare("q", table=ONCE)
    link = await house.link(tells=True)
    await publish(link, queue_id, "a", "a")
    other = await house.link(origin=1001)
    await publish(other, queue_id, "a")
    assert await link.ready(queue_id, 1) == 2


async def test_a_queue_that_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted while nobody owned its partition: the next owner has the journal forget what it kept."""
    queue_id = await house.declare("q", durable=True, table=ONCE)
    await consumed(house, queue_id)
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    await house.queues.pop("queue-1").stop()
    await house.delete("q")
    live = house.store._engine._live
    assert live.batches
    service = await house.start_queue("queue-1")
    link = await house.link(origin=1001)
    await link.until(lambda: not live.batches)
    assert not any(each.notes for each in service._host.registry.partitions.values())


async def test_what_a_later_release_notes(house: House) -> None:
    """A feature that is not known here is left alone."""
    queue_id = await house.declare("q", table=ONCE)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    queue.features.recall([(Note(queue_id, "later", b"?"), NotePlace(1, 0))], [])
    assert len(window_of(house, queue_id)) == 0


async def test_a_policy_and_the_death_of_the_owner(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a policy makes of a queue that is there outlives its owner as well."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True)
    await policy(house, "p", **{"message-deduplication": True})
    await publish(await house.link(tells=True), queue_id, "a", "a", "b")
    await another_owner(house)
    link = await house.link(origin=1001, tells=True)
    await publish(link, queue_id, "a", "b", "c")
    assert await link.ready(queue_id, 1) == 3
