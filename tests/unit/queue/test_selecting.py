"""Messages of a queue that somebody chose: shown, dropped, or taken to be moved in a transaction of the peer."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clock import epoch_ms
from services.common.message import columns
from services.queue.links import selecting
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner

LOOK, TAKE, DROP = pb.SelectRequest.LOOK, pb.SelectRequest.TAKE, pb.SelectRequest.DROP
T = 77 << 39


async def chosen(
    link: RawLink, number: int, queue_id: int, purpose: pb.SelectRequest.Purpose.ValueType, **more: Any
) -> Any:
    """All portions."""
    asked = pb.SelectRequest(queue_id=queue_id, purpose=purpose, **more)
    replies = [await link.request(number, select=asked)]
    while replies[-1].more:
        again = number * 1000 + len(replies)
        replies.append(await link.request(again, more=pb.MoreRequest(queue_id=queue_id, number=number)))
    assert all(reply.reason == pb.NONE for reply in replies), replies
    return replies


def uids(replies: list[pb.QueueReply]) -> list[int]:
    return [uid for reply in replies for uid in reply.message.uids]


@pytest.mark.parametrize(
    "more", [{}, {"max_priority": 5}, {"qpid-sort-key": "k"}], ids=["classic", "priority", "sorted"]
)
async def test_portions(house: House, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    """All that was there when it was asked is shown once, though it comes in portions; what comes later is not."""
    monkeypatch.setattr(selecting, "_AT_ONCE", 3)
    queue_id = (
        await house.declare("q", **more)
        if "qpid-sort-key" not in more
        else await house.declare("q", table={"x-qpid-sort-key": "k"})
    )
    link = await house.link()
    await link.publish(queue_id, [bytes([n]) for n in range(10)])
    first = await link.request(1, select=pb.SelectRequest(queue_id=queue_id, bodies=True))
    await link.publish(queue_id, [b"later"])
    got = await link.request(2, get=pb.GetRequest(queue_id=queue_id, settled=True))
    assert (list(got.message.bodies), first.more) == ([b"\0"], True)
    replies = [first]
    while replies[-1].more:
        again = pb.MoreRequest(queue_id=queue_id, number=1)
        replies.append(await link.request(10 + len(replies), more=again))
    assert [body for reply in replies for body in reply.message.bodies] == [bytes([n]) for n in range(10)]
    assert await link.ready(queue_id, 3) == 10


async def test_when_it_was_received(house: House) -> None:
    """Also of what does not expire, and under the next owner."""
    queue_id, link = await house.declare("q", durable=True), await house.link()
    before = epoch_ms() - 10  # the queue process counts milliseconds by a clock of its own
    await link.publish(queue_id, [b"persistent"], persistent=True)
    await link.publish(queue_id, [b"transient"])
    between = epoch_ms() + 10
    for origin in (1000, 1001):
        link = await house.link(origin=origin)
        [reply] = await chosen(link, 2, queue_id, LOOK)
        assert [before <= each.time_ms <= between for each in reply.shown] == [True, True]
        await another_owner(house)


async def test_what_is_shown(house: House) -> None:
    """Also what a consumer holds, first; what each is like; without bodies, and so many passed over, where asked."""
    queue_id = await house.declare("q", durable=True, message_ttl=60_000)
    link = await house.link()
    await link.publish(queue_id, [b"held", b"waits", b"last"])
    await link.request(1, get=pb.GetRequest(queue_id=queue_id))
    [reply] = await chosen(link, 2, queue_id, LOOK)
    assert not reply.message.bodies
    assert [(each.state, each.size) for each in reply.shown] == [
        (pb.Shown.ACQUIRED, 4), (pb.Shown.AVAILABLE, 5), (pb.Shown.AVAILABLE, 4),
    ]  # fmt: skip
    assert all(each.expires - each.time_ms == 60_000 for each in reply.shown)
    [reply] = await chosen(link, 3, queue_id, LOOK, first=1, most=1, bodies=True)
    assert list(reply.message.bodies) == [b"waits"]
    [reply] = await chosen(link, 4, queue_id, LOOK, uids=[*reply.message.uids, 9], bodies=True)
    assert list(reply.message.bodies) == [b"waits"]
    [reply] = await chosen(link, 5, queue_id, LOOK, selector="JMSDeliveryMode = 'PERSISTENT'")
    assert uids([reply]) == []
    reply = await link.request(6, select=pb.SelectRequest(queue_id=queue_id, selector="("))
    assert (reply.reason, bool(reply.text)) == (pb.OTHER, True)


async def test_dropped(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait and were chosen are gone, for the next owner too; what somebody holds stays."""
    monkeypatch.setattr(selecting, "_DROPPED", 2)
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"0", b"1", b"2", b"3", b"4"], persistent=True)
    await link.request(1, get=pb.GetRequest(queue_id=queue_id))
    gone = uids(await chosen(link, 2, queue_id, DROP, most=3))
    assert [uid & 0xFF for uid in gone] == [2, 3, 4]
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    again = await house.link()
    left = await chosen(again, 3, queue_id, LOOK, bodies=True)
    assert sorted(body for reply in left for body in reply.message.bodies) == [b"0", b"4"]


@pytest.mark.parametrize("table", [{}, {"x-delayed-retry-type": "all", "x-delayed-retry-min": 60_000}])
async def test_what_comes_back_meanwhile(
    house: House, monkeypatch: pytest.MonkeyPatch, table: dict[str, object]
) -> None:
    """It was shown as its holder's, and is not shown again where it waits now, nor where it waits for its time."""
    monkeypatch.setattr(selecting, "_AT_ONCE", 3)
    queue_id = await house.declare("q", table=table)
    link, holder = await house.link(), await house.link(origin=1001)
    await link.publish(queue_id, [bytes([n]) for n in range(10)])
    await holder.attach(queue_id, messages=6)
    await holder.until(lambda: len(holder.uids) == 6)
    replies = [await link.request(1, select=pb.SelectRequest(queue_id=queue_id, bodies=True))]
    await holder.send(detaches=[1])
    await holder.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=holder.uids)])
    assert await holder.ready(queue_id, 2) == 10
    while replies[-1].more:
        again = pb.MoreRequest(queue_id=queue_id, number=1)
        replies.append(await link.request(10 + len(replies), more=again))
    shown = [body for reply in replies for body in reply.message.bodies]
    assert len(shown) == len(set(shown))
    assert set(shown) >= {bytes([n]) for n in (0, 1, 2, 6, 7, 8, 9)}


async def moved(link: RawLink, taken: pb.QueueReply, source: int, target: int, step: Any) -> None:
    """Prepares a move of all that was taken, then tells a step."""
    batch = pb.PublishBatch(sequence=1, transaction=T, uids=[T + n for n in range(1, len(taken.message.uids) + 1)])
    batch.bodies.extend(taken.message.bodies)
    columns.put(batch, columns.facts_in(taken.message), columns.properties_in(taken.message))
    batch.queues.add(queue_id=target, count=len(batch.uids))
    settle = pb.Settle(queue_id=source, uids=taken.message.uids, transaction=T, successors=T + 1, moved_to=target)
    prepare = pb.TransactionStep(transaction=T, step=pb.TransactionStep.PREPARE)
    await link.send(publishes=[batch.SerializeToString()], settles=[settle], transactions=[prepare])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    [prepared] = [each for frame in link.frames for each in frame.prepared]
    assert prepared.reason == pb.NONE
    await link.send(transactions=[pb.TransactionStep(transaction=T, step=step)])
    await link.until(lambda: any(T in frame.completed for frame in link.frames))


@pytest.mark.parametrize("commits", [True, False])
async def test_moved(house: House, commits: bool) -> None:
    """What was taken is nobody else's; it is in the other queue once the transaction is, and else where it was."""
    source, target = await house.declare("a"), await house.declare("b")
    link, other = await house.link(), await house.link(origin=1001)
    await link.publish(source, [b"0", b"1", b"2"])
    [taken] = await chosen(link, 1, source, TAKE, most=2)
    assert (list(taken.message.bodies), await other.ready(source, 1)) == ([b"0", b"1"], 1)
    await moved(link, taken, source, target, pb.TransactionStep.COMPLETE if commits else pb.TransactionStep.ABORT)
    assert await other.ready(target, 2) == 2 * commits
    await link.close()  # what it has yet goes back
    await other.attach(source)
    await other.until(lambda: len(other.bodies) == (1 if commits else 3))
    assert other.bodies == ([b"2"] if commits else [b"0", b"1", b"2"])


async def test_what_was_taken_comes_back_as_it_left(house: House) -> None:
    """Whoever was to move it is gone: it is at its place, and counts no attempt, though no other would be allowed."""
    queue_id = await house.declare("q", table={"x-delivery-limit": 0})
    link, other = await house.link(), await house.link(origin=1001)
    await link.publish(queue_id, [b"0", b"1"])
    await chosen(link, 1, queue_id, TAKE)
    await link.close()
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == [b"0", b"1"])
    assert not any(run.redelivered for run in other.runs)


async def test_what_was_taken_is_handed_over_as_it_left(house: House) -> None:
    """The next owner waits for nobody to say what becomes of it, and counts no attempt."""
    queue_id = await house.declare("q", table={"x-delivery-limit": 0})
    link = await house.link()
    await link.publish(queue_id, [b"0", b"1"])
    await chosen(link, 1, queue_id, TAKE)
    await house.start_queue("queue-2")
    await house.queues.pop("queue-1").stop()
    other = await house.link("queue-2", origin=1001)
    while (await other.attach(queue_id)).reason != pb.NONE:
        other.frames.clear()
    await other.until(lambda: other.bodies == [b"0", b"1"])
    assert not any(run.redelivered for run in other.runs)
