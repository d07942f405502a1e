"""A consumer that drains is sent what is ready, and has no credit then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.common.message.facts import Facts
from services.queue.machine import turn
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    import pytest

    from tests.support.queue_house import House, RawLink


def drained(link: RawLink) -> list[tuple[int, int]]:
    return [(each.consumer, each.left) for frame in link.frames for each in frame.drained]


async def test_what_is_ready_comes_first(house: House) -> None:
    """The answer stands behind the deliveries, and says what was left; later messages stay in the queue."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, messages=0)
    await link.publish(queue_id, [b"1", b"2"])
    await link.send(credits=[pb.Credit(consumer=1, messages=5, drain=True)])
    await link.until(lambda: drained(link))
    assert (link.bodies, drained(link)) == ([b"1", b"2"], [(1, 3)])
    await link.publish(queue_id, [b"3"])
    assert await link.ready(queue_id, 9) == 1
    await link.send(credits=[pb.Credit(consumer=1, messages=1)])
    await link.until(lambda: len(link.bodies) == 3)


async def test_all_of_the_credit_was_used(house: House) -> None:
    """Then nothing is left."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, messages=0)
    await link.publish(queue_id, [b"1", b"2", b"3"])
    await link.send(credits=[pb.Credit(consumer=1, messages=2, drain=True)])
    await link.until(lambda: drained(link))
    assert (link.bodies, drained(link)) == ([b"1", b"2"], [(1, 0)])


async def test_bytes_are_waited_for(house: House) -> None:
    """What is ready and has no room is not left behind: the gateway says it again when there is room."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=0, bytes=10)])
    await link.publish(queue_id, [b"x" * 100, b"y" * 100])
    await link.send(credits=[pb.Credit(consumer=1, messages=5, drain=True)])
    await link.until(lambda: len(link.bodies) == 1)
    assert await link.ready(queue_id, 9) == 1
    assert drained(link) == []
    await link.send(credits=[pb.Credit(consumer=1, bytes=1000, drain=True)])
    await link.until(lambda: drained(link))
    assert (len(link.bodies), drained(link)) == (2, [(1, 3)])


async def test_others_go_on(house: House) -> None:
    """A consumer that drains leaves its turn to the others."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, 1, messages=10)
    await link.attach(queue_id, 2, messages=10)
    await link.send(credits=[pb.Credit(consumer=1, drain=True)])
    await link.until(lambda: drained(link))
    await link.publish(queue_id, [b"1", b"2", b"3"])
    assert [(run.consumer, run.count) for run in link.runs] == [(2, 3)]


async def test_no_consumer_drains(house: House) -> None:
    """A consumer that is gone is not answered for."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.send(credits=[pb.Credit(consumer=7, messages=1, drain=True)])
    assert await link.ready(queue_id, 9) == 0
    assert drained(link) == []


async def test_what_is_due_comes_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more than goes in a turn is due at once, and the clock has not looked yet."""
    monkeypatch.setattr(turn, "SCATTERED", 2)
    queue_id = await house.declare("q", table={"holdOnPublishEnabled": True})
    link, host = await house.link(), house.queues["queue-1"]._host
    queue, now = host.registry.queues[queue_id], host.now()
    await link.attach(queue_id, messages=0)
    delayed = Facts("/", "", "q", "amqp-0-9", not_before=now + 60_000)
    await link.publish_facts(queue_id, [b"%d" % number for number in range(5)], delayed)
    monkeypatch.setattr(queue, "deadline", lambda: 0)
    monkeypatch.setattr(host.registry, "now", lambda: now + 60_000)
    await link.send(credits=[pb.Credit(consumer=1, messages=9, drain=True)])
    await link.until(lambda: drained(link))
    assert (len(link.bodies), drained(link)) == (5, [(1, 4)])


async def test_while_leases_may_have_run_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due is delivered, and the consumer answered, when it is known who has the queue."""
    monkeypatch.setattr(turn, "SCATTERED", 2)
    queue_id = await house.declare("q", table={"holdOnPublishEnabled": True})
    link, host = await house.link(), house.queues["queue-1"]._host
    queue, now, held = host.registry.queues[queue_id], host.now(), host.leases_hold
    lags = queue.lags

    def runs_out(now: int) -> bool:
        host.leases_hold = bool
        return lags(now)

    await link.attach(queue_id, messages=0)
    delayed = Facts("/", "", "q", "amqp-0-9", not_before=now + 60_000)
    await link.publish_facts(queue_id, [b"%d" % number for number in range(5)], delayed)
    monkeypatch.setattr(queue, "deadline", lambda: 0)
    monkeypatch.setattr(host.registry, "now", lambda: now + 60_000)
    monkeypatch.setattr(queue, "lags", runs_out)
    await link.send(credits=[pb.Credit(consumer=1, messages=9, drain=True)])
    await link.until(lambda: link.bodies)
    await asyncio.sleep(0.1)
    assert (len(link.bodies), drained(link)) == (2, [])
    monkeypatch.setattr(queue, "lags", lags)
    host.leases_hold = held
    host.resume(valid=True)
    await link.until(lambda: drained(link))
    assert (len(link.bodies), drained(link)) == (5, [(1, 4)])


async def test_credit_is_taken_back(house: House) -> None:
    """The answer stands behind what was delivered, and says what was left; the owner says that it can be asked."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, messages=5)
    await link.publish(queue_id, [b"1", b"2"])
    await link.send(credits=[pb.Credit(consumer=1, stop=True)])
    await link.until(lambda: drained(link))
    said = [each.stopped for frame in link.frames for each in frame.drained]
    assert (link.bodies, drained(link), said) == ([b"1", b"2"], [(1, 3)], [True])
    assert [each.stops for frame in link.frames for each in frame.attached] == [True]
    await link.publish(queue_id, [b"3"])
    assert await link.ready(queue_id, 9) == 1
