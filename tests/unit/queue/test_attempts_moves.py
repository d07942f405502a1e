"""A limit of attempts is kept over the death of the queue's owner."""

from __future__ import annotations

import pytest

from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner


async def fail(link: RawLink, queue_id: int) -> None:
    """The message that was delivered last comes back as one that could not be dealt with."""
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids[-1:])])


@pytest.mark.parametrize("dies", [True, False])
async def test_over_deaths(house: House, monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    """Each failure is counted once, whoever owned the queue then; what is settled leaves nothing in the journal."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True, delivery_limit=6)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    failed = 0
    for origin in (1001, 1002, 1003):
        link = await house.link(origin=origin)
        await link.attach(queue_id, messages=2)
        for seen in range(2):
            await link.until(lambda: len(link.uids) > seen)  # noqa: B023 - awaited at once
            assert link.runs[-1].attempts == failed
            await fail(link, queue_id)
            failed += 1
        await link.ready(queue_id, 1)
        await link.close()
        await another_owner(house)
    link = await house.link(origin=1004)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert link.runs[-1].attempts == 6
    await fail(link, queue_id)
    live = house.store._engine._live
    await link.until(lambda: not live.batches)


async def test_what_is_noted_of_what_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A next owner that finds a note without its message drops it."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True, delivery_limit=6)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=3)
    for seen in range(2):
        await link.until(lambda: len(link.uids) > seen)  # noqa: B023
        await fail(link, queue_id)
    await link.until(lambda: len(link.uids) > 2)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    queue._entries.attempts = None  # it dies before it has dropped the note
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[-1:])])
    live = house.store._engine._live
    await link.until(lambda: len(live.batches) == 1)
    await link.close()
    await another_owner(house)
    await (await house.link(origin=1001)).until(lambda: not live.batches)


async def test_what_is_held_over_a_death(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has it claims it from the next owner: what failed before is counted yet, and once."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True, delivery_limit=4)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id)
    for seen in range(3):
        await link.until(lambda: len(link.uids) > seen)  # noqa: B023
        await fail(link, queue_id)
    for failed in (3, 4):
        await link.until(lambda: link.runs and link.runs[-1].attempts == failed)  # noqa: B023
        held = link.uids[-1]
        await another_owner(house)
        await link.close()
        link = await house.link(origin=1000)
        await link.attach(queue_id, held=[held])
        await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=[held])])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)
    assert not link.runs


async def test_dead_letters_under_way(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has not arrived when its owner dies is tried once more, not from the start."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    parked = await house.declare("parked", max_length=1, overflow="reject-publish")
    to_parked = {"dead_letter_exchange": "", "dead_letter_routing_key": "parked"}
    queue_id = await house.declare("q", durable=True, delivery_limit=3, **to_parked)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.publish(parked, [b"in the way"])
    await link.attach(queue_id)
    for seen in range(4):
        await link.until(lambda: len(link.uids) > seen)  # noqa: B023
        await fail(link, queue_id)
    assert await link.ready(queue_id, 1) == 0
    await link.close()
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.publish(parked, [b"in the way"])
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert link.runs[0].attempts == 3
    await fail(link, queue_id)
    await link.request(1, get=pb.GetRequest(queue_id=parked, settled=True))
    live = house.store._engine._live
    await link.until(lambda: not live.batches)
    assert await link.ready(parked, 2) == 1
