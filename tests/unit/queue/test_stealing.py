"""Consumers that take the place of others (AMQP 1.0, section 2.6.1): the last thief has the queue, whoever is away."""

from __future__ import annotations

import pytest

from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


def stolen(link: RawLink) -> list[int]:
    """Consumers that its gateway was told have lost the queue."""
    return [each.consumer for frame in link.frames for each in frame.cancelled if each.reason == pb.STOLEN]


def again(queue_id: SlotId, consumer: int, theft: int) -> pb.AttachConsumer:
    """As a gateway says it to whom it finds in place of the former owner, or of its former stream."""
    return pb.AttachConsumer(
        consumer=consumer, queue_id=queue_id, messages=9, bytes=9999, again=True, steals=True, theft=theft
    )


async def test_the_last_one_has_it(house: House) -> None:
    """Numbers of thefts grow; who was there is told."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    thefts = [
        (await first.attach(queue_id, 1, steals=True)).theft,
        (await second.attach(queue_id, 2, steals=True)).theft,
    ]
    await first.until(lambda: stolen(first) == [1])
    assert 0 < thefts[0] < thefts[1]


async def test_who_was_away_when_it_was_stolen(house: House) -> None:
    """Is told when it comes back: its stream was down, so that the thief found nobody there."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    theft = (await first.attach(queue_id, 1, steals=True)).theft
    await first.close()
    await second.attach(queue_id, 2, steals=True)
    back = await house.link(origin=1001)
    await back.send(attaches=[again(queue_id, 3, theft)])
    await back.until(lambda: stolen(back) == [3])
    await back.publish(queue_id, [b"1"])
    await second.until(lambda: second.uids)
    assert stolen(second) == []


@pytest.mark.parametrize("theft", [1 << 42, 1 << 63 | 7])
async def test_who_has_stolen_from_a_former_owner(house: House, theft: int) -> None:
    """Who steals later has it, though the owner now has not heard of the former theft, and its clock may be behind."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    await second.attach(queue_id, 2, steals=True)
    await first.send(attaches=[again(queue_id, 1, theft)])
    await first.until(lambda: stolen(first) == [1])
    assert stolen(second) == []


@pytest.mark.parametrize("thief_first", [True, False])
async def test_an_owner_that_died_before_it_told(house: House, *, thief_first: bool) -> None:
    """Both come back to the next owner, which goes by what they say."""
    queue_id = await house.declare("q")
    first, second = await house.link(origin=1001), await house.link(origin=1002)
    theft = 7_000
    both = [(first, again(queue_id, 1, theft)), (second, again(queue_id, 2, theft + 1))]
    for link, attach in reversed(both) if thief_first else both:
        await link.send(attaches=[attach])
        await link.until(lambda link=link: any(frame.attached for frame in link.frames))
    await first.until(lambda: stolen(first) == [1])
    await second.publish(queue_id, [b"1", b"2"])
    await second.until(lambda: len(second.uids) == 2)
    assert (stolen(second), first.uids) == ([], [])


async def test_who_has_stolen_nothing_is_let_be(house: House) -> None:
    """It came after the theft, and is no thief's former self when that comes again."""
    queue_id = await house.declare("q")
    link = await house.link(origin=1001)
    await link.attach(queue_id, 1)
    await link.send(attaches=[again(queue_id, 2, 7_000)])
    await link.until(lambda: any(each.theft for frame in link.frames for each in frame.attached))
    assert stolen(link) == []
