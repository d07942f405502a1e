"""Messages that a consumer had given back to a former owner, which died: they come again, and were delivered before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from tests.support.queue_house import House, RawLink

_UID = 1001 << 39 | 7


async def _tells(link: RawLink, queue_id: int, outcome: pb.Outcome.ValueType = pb.RELEASE, **more: Any) -> None:
    """The gateway of that consumer claims the message, and says what became of it."""
    claim = pb.AttachConsumer(consumer=9, queue_id=queue_id, held=[_UID], again=True, stray=True)
    settle = pb.Settle(queue_id=queue_id, outcome=outcome, uids=[_UID], **more)
    await link.send(attaches=[claim], settles=[settle])
    await link.ready(queue_id, 8)


async def _delivered(link: RawLink, queue_id: int) -> list[tuple[int, int]]:
    """To a consumer that comes then: how many, and attempts before."""
    await link.attach(queue_id, 2)
    await link.until(lambda: bool(link.uids))
    return [(run.count, run.attempts) for run in link.runs]


@pytest.mark.parametrize("outcome", [pb.RELEASE, pb.ABANDON])
async def test_it_is_sent_again_later(house: House, outcome: pb.Outcome.ValueType) -> None:
    """As one that was delivered."""
    queue_id, link = await house.declare("q"), await house.link()
    await _tells(link, queue_id, outcome, again=outcome == pb.RELEASE)
    await link.publish(queue_id, [b"x"], uids=[_UID], resent=True)
    assert await _delivered(link, queue_id) == [(1, 1)]


async def test_it_was_sent_again_before(house: House) -> None:
    """The same; it keeps its place."""
    queue_id, link = await house.declare("q"), await house.link()
    await link.publish(queue_id, [b"x"], uids=[_UID], resent=True)
    await link.publish(queue_id, [b"y"], uids=[_UID + 1], resent=True)
    await _tells(link, queue_id, again=True)
    assert await _delivered(link, queue_id) == [(1, 1), (1, 0)]
    assert link.uids == [_UID, _UID + 1]


async def test_it_was_never_tried(house: House) -> None:
    """Then it comes as new."""
    queue_id, link = await house.declare("q"), await house.link()
    await _tells(link, queue_id, pb.RESTORE)
    await link.publish(queue_id, [b"x"], uids=[_UID], resent=True)
    assert await _delivered(link, queue_id) == [(1, 0)]


async def test_it_was_accepted_since(house: House) -> None:
    """Whoever says so: it does not come."""
    queue_id, link = await house.declare("q"), await house.link()
    await _tells(link, queue_id, again=True)
    await _tells(link, queue_id, pb.ACCEPT)
    await link.publish(queue_id, [b"x", b"y"], uids=[_UID, _UID + 1], resent=True)
    assert await _delivered(link, queue_id) == [(1, 0)]
    assert link.uids == [_UID + 1]


async def test_an_attempt_that_is_noted(house: House) -> None:
    """It was counted before the owner died, and is not counted twice."""
    queue_id, link = await house.declare("q", durable=True, table={"x-delivery-limit": 5}), await house.link()
    await link.publish(queue_id, [b"x"], uids=[_UID], persistent=True)
    await link.attach(queue_id, 1, messages=1)
    for number in (1, 2):
        await link.until(lambda number=number: len(link.uids) == number)
        settle = pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=[_UID])
        await link.send(settles=[settle], **({"credits": [pb.Credit(consumer=1, messages=1)]} if number == 1 else {}))
    await _tells(link, queue_id, again=True)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    await link.attach(queue_id, 2)
    await link.until(lambda: len(link.uids) == 3)
    assert [entry.attempts for entry in queue.unsettled.values()] == [2]
