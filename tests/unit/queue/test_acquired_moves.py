"""How often a message was somebody's is known to the next owner of its queue, as its attempts are."""

from __future__ import annotations

import pytest

from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner


async def given_back(link: RawLink, queue_id: int, *, had: bool) -> None:
    """The one message of the queue, by who was given it last."""
    outcome = pb.RESTORE if had else pb.RELEASE
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=outcome, had=had, uids=link.uids[-1:])])


async def consuming(house: House, queue_id: int, origin: int, *, messages: int = 1) -> RawLink:
    """Which has been given the message."""
    link = await house.link(origin=origin)
    await link.attach(queue_id, messages=messages)
    await link.until(lambda: link.uids)
    return link


@pytest.mark.parametrize("durable", [False, True])
async def test_over_moves(house: House, durable: bool) -> None:
    """Counts go on from what the former owners had; what none of them needs any more is left nowhere."""
    queue_id = await house.declare("q", durable=durable, delivery_limit=5)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=durable)
    for origin in (1001, 1002):
        link = await consuming(house, queue_id, origin)
        await given_back(link, queue_id, had=True)
        await link.ready(queue_id, 1)
        await link.close()
        await another_owner(house)
    link = await consuming(house, queue_id, 1003, messages=2)
    await given_back(link, queue_id, had=False)
    await link.until(lambda: len(link.uids) == 2)
    assert [(run.attempts, run.acquired) for run in link.runs] == [(0, 2), (1, 3)]
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[:1])])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)
