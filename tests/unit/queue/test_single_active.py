"""What gateways are told of a queue's single active consumer, and tell its next owner."""

from __future__ import annotations

import pytest

from services.queue.links import link as links
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


def active(*links: RawLink) -> list[tuple[int, int]]:
    """(consumer, number) as gateways have heard."""
    return sorted((each.number, each.consumer) for link in links for frame in link.frames for each in frame.activated)


async def test_gateways_hear_ages_and_the_active_one(house: House) -> None:
    """Ages follow the order of attaching; the active one is named with its messages, or before."""
    queue_id = await house.declare("q", single_active_consumer=True)
    link = await house.link()
    ages = [(await link.attach(queue_id, consumer)).age for consumer in (1, 2)]
    assert 0 < ages[0] < ages[1]
    assert not active(link)
    await link.publish(queue_id, [b"1"])
    await link.until(lambda: link.uids)
    [(number, consumer)] = active(link)
    assert (consumer, number > ages[1]) == (1, True)


async def test_of_other_queues_nothing_is_told(house: House) -> None:
    """They have no single active consumer."""
    link = await house.link()
    assert not (await link.attach(await house.declare("q"))).age


async def test_the_next_owner_goes_by_what_gateways_say(house: House) -> None:
    """All that one frame attaches is heard before one is chosen."""
    queue_id = await house.declare("q", single_active_consumer=True)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"])
    young = pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=9, bytes=9999, again=True, age=2)
    was_active = pb.AttachConsumer(
        consumer=2, queue_id=queue_id, messages=1, bytes=9999, again=True, age=3, activated=4
    )
    await link.send(attaches=[young, was_active])
    await link.until(lambda: link.uids)
    assert [(run.consumer, run.count) for run in link.runs] == [(2, 1)]


@pytest.mark.parametrize("returns", [True, False])
async def test_a_stream_that_breaks(house: House, monkeypatch: pytest.MonkeyPatch, *, returns: bool) -> None:
    """The next consumer gets nothing until the gateway of the active one stays away, and then all of it in order."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 60.0 if returns else 0.3)
    queue_id = await house.declare("q", single_active_consumer=True)
    first, other = await house.link(origin=1001, tells=True), await house.link(origin=1002, tells=True)
    age = (await first.attach(queue_id, messages=1)).age
    await other.attach(queue_id, 2)
    await other.publish(queue_id, [b"1", b"2"])
    await first.until(lambda: first.uids)
    [(number, _)] = active(first)
    await first.close()
    if returns:
        again = await house.link(origin=1001, tells=True)
        await again.attach(queue_id, 3, messages=1, held=first.uids, again=True, age=age, activated=number)
        await again.until(lambda: again.bodies)
        assert (again.bodies, other.bodies) == ([b"2"], [])
    else:
        await other.until(lambda: other.bodies == [b"1", b"2"])
