"""What else happens to a queue, or to a stream, while clients' messages are claimed in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from services.common.topology.slots import SlotId
from services.queue import counting
from services.queue.host import Host
from services.queue.links import requests
from services.queue.links.link import PeerLink
from services.queue.machine.overflow.drop_head import DropHead
from services.queue.machine.queue import Queue
from services.queue.machine.seeking import Seeking
from services.queue.machine.walk import Walk
from services.queue.partitions import partitions
from services.queue.timers import Timers
from services.rpc import queue_pb2 as pb
from tests.support.many_claims import (
    BODIES,
    FEW,
    MANY,
    Between,
    held_before,
    holder,
    in_steps,
    stream_of,
    taker,
    waiting,
)
from tests.support.queue_house import House, RawLink


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return in_steps(monkeypatch)


def ask(host: Host, link: PeerLink, **request: Any) -> None:
    requests.answer_all(host, link, [pb.QueueRequest(id=1, **request)])


def replies(link: RawLink) -> list[pb.QueueReply]:
    return [reply for frame in link.frames for reply in frame.replies]


async def test_the_clock_ticks_in_between(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients hold is not dropped where the queue has too much, and what is too much goes when theirs is found."""
    queue_id, link, uids = await waiting(house, durable=True)
    host = house.queues["queue-1"]._host
    queue = host.registry.queues[SlotId(queue_id)]

    def ticks() -> None:
        queue.adopt(replace(queue.options, max_length=2), DropHead(), host.now())
        queue.expire(host.now())

    between = Between(monkeypatch, steps, ticks)
    await link.send(attaches=[holder(queue_id, uids[:-4])])
    await link.until(lambda: between.done and not host.claims)
    assert (sorted(queue.unsettled), queue.ready_count) == (uids[:-4], 2)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda queue_id: {"purge": pb.PurgeRequest(queue_id=queue_id)},
        lambda queue_id: {"select": pb.SelectRequest(queue_id=queue_id, purpose=pb.SelectRequest.DROP)},
        lambda queue_id: {"select": pb.SelectRequest(queue_id=queue_id, purpose=pb.SelectRequest.TAKE)},
    ],
)
async def test_others_take_what_waits_in_between(
    house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch, request_of: Callable[[int], dict[str, Any]]
) -> None:
    """They get, or drop, what no client holds, and nothing else."""
    queue_id, link, uids = await waiting(house)
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    queue = host.registry.queues[SlotId(queue_id)]
    Between(monkeypatch, steps, lambda: ask(host, stream_of(host, 1001), **request_of(queue_id)))
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await other.until(lambda: replies(other))
    assert [reply.reason for reply in replies(other)] == [pb.NONE]
    assert queue.ready_count == 0
    mine = [uid for uid, entry in queue.unsettled.items() if entry.holder is stream_of(host, 1000)]
    assert sorted(mine) == uids[:-1]


async def test_a_selection_that_had_begun(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes on when all is claimed: it drops nothing that a client holds."""
    queue_id, _link, uids = await waiting(house)
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    queue = host.registry.queues[SlotId(queue_id)]
    select = pb.SelectRequest(queue_id=queue_id, purpose=pb.SelectRequest.DROP)
    ask(host, stream_of(host, 1001), select=select)  # its first portion is gathered in a later turn
    stream_of(host, 1000).receive(pb.LinkFrame(attaches=[holder(queue_id, uids[:-1])]), ())
    await other.until(lambda: replies(other))
    assert (sorted(queue.unsettled), queue.ready_count) == (uids[:-1], 0)


async def test_it_is_deleted_if_empty(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients hold is not in it, though it is not found yet."""
    queue_id, link, uids = await waiting(house)
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    delete = pb.DeleteRequest(queue_id=queue_id, if_empty=True)
    Between(monkeypatch, steps, lambda: ask(host, stream_of(host, 1001), delete=delete))
    await link.send(attaches=[holder(queue_id, uids, stray=True)])
    await other.until(lambda: replies(other))
    assert replies(other)[0].reason == pb.NONE


@pytest.mark.parametrize("transaction", [0, 5])
async def test_it_takes_no_more_than_fits(
    house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch, transaction: int
) -> None:
    """What clients hold keeps no newcomer out, nor a transaction's."""
    queue_id, link, uids = await waiting(house, max_length=MANY, overflow="reject-publish")
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    step = pb.TransactionStep(transaction=transaction, step=pb.TransactionStep.PREPARE)
    frame = pb.LinkFrame(transactions=[step] if transaction else [])
    batch = other.batch(queue_id, [b"new"] * MANY, transaction=transaction)
    Between(monkeypatch, steps, lambda: stream_of(host, 1001).receive(frame, [batch]))
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    answered = lambda: other.done() or [each for frame in other.frames for each in frame.prepared]  # noqa: E731
    await other.until(answered)
    prepared = [each.reason for frame in other.frames for each in frame.prepared]
    queue = host.registry.queues[SlotId(queue_id)]
    if transaction:
        assert prepared == [pb.OVERFLOW]  # of which there is one too many
    else:
        assert [count for _, count, _ in other.refusals()] == [1]
        assert queue.ready_count == MANY
    assert sorted(queue.unsettled) == uids[:-1]


async def test_the_time_to_claim_is_over_in_between(
    house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for its turn to claim is waited for: nothing that it holds counts as tried once more."""
    queue_id, former = await held_before(house, durable=True, delivery_limit=1)
    host = house.queues["queue-1"]._host
    partition = host.registry.partition_of(SlotId(queue_id))
    assert partition
    timers = Timers(host, bool)

    def time_passes() -> None:
        for each in host.registry.partitions.values():
            each.claimable_until = min(each.claimable_until, 1)
            timers._check_claims(each, host.now())

    between = Between(monkeypatch, steps, time_passes)
    link = await house.link()
    await link.send(attaches=[holder(queue_id, former.uids)])
    await link.until(lambda: between.done and not host.claims)
    assert partition.claimable_until > host.now()
    held = partition.queues[SlotId(queue_id)].unsettled
    assert (sorted(held), {entry.holder for entry in held.values()}) == (former.uids, {stream_of(host, 1000)})


async def test_what_is_looked_at_counts(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Few that are somewhere among many cost as many looks: what would be too much in one turn is done in others."""
    link, at_once = await house.link(), list[int]()
    claim = Queue.claim
    monkeypatch.setattr(Queue, "claim", lambda self, held, *more: (at_once.append(1), claim(self, held, *more)))
    attaches = list[pb.AttachConsumer]()
    for number in range(3):
        queue_id = await house.declare(f"q-{number}")
        uids = [(1000 << 39) + number * 100 + at for at in range(FEW // 2)]
        await link.publish(queue_id, BODIES[: FEW // 2], uids=uids)
        attach = holder(queue_id, uids[-1:])
        attach.consumer = number + 1
        attaches.append(attach)
    await link.send(attaches=attaches)
    host = house.queues["queue-1"]._host
    queues = [host.registry.queues[SlotId(attach.queue_id)] for attach in attaches]
    await link.until(lambda: all(queue.unsettled for queue in queues))
    assert len(at_once) == 1


async def test_others_in_the_same_frame_hold_some(house: House, steps: list[int]) -> None:
    """Nothing is delivered before all of the frame is heard, though the first of them is found at once."""
    queue_id, link, uids = await waiting(house)
    holders = [holder(queue_id, [uid], stray=True) for uid in uids[:2]]
    await link.send(attaches=[taker(queue_id), *holders])
    await link.until(lambda: len(link.uids) >= MANY - 2, 8)
    assert link.uids == uids[2:]


async def test_frames_that_had_waited_for_leases(house: House, steps: list[int]) -> None:
    """They wait again for what the first of them claims, and so does what comes behind them."""
    queue_id, link, uids = await waiting(house, durable=True)
    host = house.queues["queue-1"]._host
    its, hold = stream_of(host, 1000), host.leases_hold
    host.leases_hold = bool
    its.receive(pb.LinkFrame(attaches=[holder(queue_id, uids[:-1])]), ())
    its.receive(pb.LinkFrame(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=uids[:20])]), ())
    its.receive(pb.LinkFrame(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=uids[20:-1])]), ())
    host.leases_hold = hold
    host.resume(valid=True)
    await link.send(attaches=[taker(queue_id)])
    await link.until(lambda: link.bodies, 8)
    queue = host.registry.queues[SlotId(queue_id)]
    await link.until(lambda: len(link.uids) == 21, 8)
    assert link.uids == [*uids[:20], uids[-1]]
    assert sorted(queue.unsettled) == [*uids[:20], uids[-1]]


async def test_a_stream_claims_of_several(house: House, steps: list[int]) -> None:
    """Its frames wait until all of it is claimed, not only the first."""
    queue_id, link, uids = await waiting(house, durable=True)
    second = await house.declare("second", durable=True)
    others = [uid + 1000 for uid in uids]
    await link.publish(second, BODIES, uids=others)
    await link.send(attaches=[holder(queue_id, uids), holder(second, others, stray=True)])
    settles = [
        pb.Settle(queue_id=each, outcome=pb.ACCEPT, uids=its) for each, its in ((second, others), (queue_id, uids))
    ]
    await link.send(settles=settles)
    host = house.queues["queue-1"]._host
    queues = [host.registry.queues[SlotId(each)] for each in (queue_id, second)]
    await link.until(
        lambda: steps and not host.claims and not any(queue.unsettled or queue.ready_count for queue in queues)
    )
    assert not host.claims._links


async def test_a_partition_is_read_back_meanwhile(
    house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not served before: what gateways have to say of it waits behind what they have said."""
    monkeypatch.setattr(partitions, "_SHORTLY", 0)
    queue_id, _link, uids = await waiting(house)
    its, host = house.queues["queue-1"]._partitions, house.queues["queue-1"]._host
    partition, heard = its._new(3, 2), list[bool]()
    monkeypatch.setattr(its, "_have_told", lambda _: False)
    between = Between(monkeypatch, steps, lambda: None)
    walked = Walk.some

    def looks(self: Walk, most: int) -> Any:
        heard.append(hearing.done())
        return walked(self, most)

    monkeypatch.setattr(Walk, "some", looks)
    stream_of(host, 1000).receive(pb.LinkFrame(attaches=[holder(queue_id, uids[1:])]), ())
    hearing = asyncio.ensure_future(its._heard(partition))
    await hearing
    assert between.done
    assert (len(heard) > 5, any(heard), bool(host.claims)) == (True, False, False)


async def test_an_immediate_message(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the claims, and what its publisher sends behind it does: then a consumer takes both, in order."""
    queue_id, link, uids = await waiting(house)
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    first, behind = other.batch(queue_id, [b"at once"], immediate=True), other.batch(queue_id, [b"behind"])

    def publishes() -> None:
        stream_of(host, 1001).receive(pb.LinkFrame(), [first])
        stream_of(host, 1001).receive(pb.LinkFrame(), [behind])

    Between(monkeypatch, steps, publishes)
    await link.send(attaches=[holder(queue_id, uids), taker(queue_id)])
    await other.until(lambda: len(other.done()) == 2)
    await link.until(lambda: len(link.bodies) == 2)
    assert (link.bodies, other.refusals()) == ([b"at once", b"behind"], [])


async def test_an_immediate_message_for_nobody(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its publisher is told when all is claimed."""
    queue_id, link, uids = await waiting(house)
    other, host = await house.link(origin=1001), house.queues["queue-1"]._host
    await other.until(lambda: any(each.origin == 1001 for each in host.links))
    batch = other.batch(queue_id, [b"at once"], immediate=True)
    Between(monkeypatch, steps, lambda: stream_of(host, 1001).receive(pb.LinkFrame(), [batch]))
    await link.send(attaches=[holder(queue_id, uids)])
    await other.until(other.done)
    assert [reason for _, _, reason in other.refusals()] == [pb.NO_CONSUMERS]


async def test_its_stream_breaks_and_comes_again(
    house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that it said to hold is kept for it, though no later frame has claimed it yet: nobody else gets it."""
    queue_id, link, uids = await waiting(house)
    gateway, host = await house.link(origin=1001, tells=True), house.queues["queue-1"]._host
    await gateway.until(lambda: any(each.origin == 1001 for each in host.links))
    between = Between(monkeypatch, steps, lambda: stream_of(host, 1001).close())
    other = pb.LinkFrame(attaches=[taker(queue_id)])
    stream_of(host, 1001).receive(pb.LinkFrame(attaches=[holder(queue_id, uids)]), ())
    stream_of(host, 1000).receive(other, ())
    await link.until(lambda: between.done and not host.claims)
    again = await house.link(origin=1001, tells=True)
    await again.until(lambda: any(each.origin == 1001 for each in host.links))
    await again.send(attaches=[holder(queue_id, uids)])
    its = host.registry.queues[SlotId(queue_id)].unsettled
    await again.until(lambda: {entry.holder for entry in its.values()} == {stream_of(host, 1001)})
    assert (sorted(its), link.uids) == (uids, [])


@pytest.mark.parametrize("step", ["begin", "look", "hold_up"])
async def test_a_step_fails(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The queue is served all the same, and so is what waits for it."""
    queue_id, link, uids = await waiting(house)
    host = house.queues["queue-1"]._host

    def fails(*_: Any) -> None:
        raise ValueError("a fault in a step")

    monkeypatch.setattr(Seeking, step, fails)
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await link.until(lambda: len(steps) > 5 or step == "hold_up")
    other = await house.link(origin=1001)
    await other.send(attaches=[taker(queue_id)])
    await other.until(lambda: uids[-1] in other.uids)
    assert not host.claims


async def test_a_step_fails_once(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is not found yet is looked for anew: nobody else gets it."""
    queue_id, link, uids = await waiting(house)
    look, looks = Seeking.look, list[int]()

    def fails(self: Seeking, *said: Any) -> bool:
        looks.append(1)
        if len(looks) == 4:
            raise ValueError("a fault in a step")
        return look(self, *said)

    monkeypatch.setattr(Seeking, "look", fails)
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await link.until(lambda: len(looks) > 4)
    other = await house.link(origin=1001)
    await other.send(attaches=[taker(queue_id)])
    await other.until(lambda: other.uids)
    assert other.uids == uids[-1:]


async def test_what_is_counted_in_between(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message is counted once, at every step."""
    queue_id, link, uids = await waiting(house)
    host, counts = house.queues["queue-1"]._host, list[tuple[int, int]]()
    queue, walked = host.registry.queues[SlotId(queue_id)], Walk.some

    def count() -> None:
        for told in counting.portions(host.registry.queues):
            at = list(told.queue_ids).index(queue_id)
            counts.append((told.ready[at], told.unsettled[at]))

    def looks(self: Walk, most: int) -> Any:
        count()
        return walked(self, most)

    monkeypatch.setattr(Walk, "some", looks)
    Between(monkeypatch, steps, count)
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await link.until(lambda: counts and not host.claims)
    count()
    assert len(counts) > 5
    assert {sum(both) for both in counts} == {MANY}
    assert counts[-1] == (1, MANY - 1)
    assert (queue.ready_count, len(queue.unsettled)) == counts[-1]


async def test_others_settle_in_between(house: House, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is another client's is done with at once, though all is not claimed yet."""
    queue_id = await house.declare("q", durable=True)
    link, other, host = await house.link(), await house.link(origin=1001), house.queues["queue-1"]._host
    await other.attach(queue_id, messages=2)
    await other.publish(queue_id, [b"1", b"2"], persistent=True)
    await other.until(lambda: len(other.uids) == 2)
    await link.publish(queue_id, BODIES)
    uids = list(range((1000 << 39) + 1, (1000 << 39) + 1 + MANY))
    their_turn = asyncio.Event()
    between = Between(monkeypatch, steps, lambda: monkeypatch.setattr(host.turns, "until_certain", their_turn.wait))
    await link.send(attaches=[holder(queue_id, uids)])
    await other.until(lambda: between.done)
    await other.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=other.uids)])
    queue = host.registry.queues[SlotId(queue_id)]
    await other.until(lambda: not queue.unsettled.keys() & set(other.uids), 8)
    assert host.claims
    their_turn.set()
    await link.until(lambda: not host.claims)
    assert sorted(queue.unsettled) == uids
