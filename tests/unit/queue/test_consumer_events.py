from __future__ import annotations

from typing import Any

import pytest

from services.common.bus.facts import ConsumerAttached, ConsumerCancelled, ConsumerDetached, Facts
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


class _Heard(list[Any]):
    def publish(self, facts: Facts) -> None:
        self.append(facts)


@pytest.fixture
def heard(house: House) -> _Heard:
    heard = _Heard()
    house.queues["queue-1"]._host.events = heard
    return heard


async def _attach(house: House, link: Any, queue_id: int, consumer: int, tag: str) -> None:
    await link.send(attaches=[pb.AttachConsumer(consumer=consumer, queue_id=queue_id, tag=tag, connection="7.1")])
    await link.until(lambda: any(a.consumer == consumer for frame in link.frames for a in frame.attached))


async def test_a_consumer_s_ends(house: House, heard: _Heard) -> None:
    """A consumer is told when it comes, and when it leaves, loses its gateway or its queue: each end in its own way."""
    queue_id, link = await house.declare("q"), await house.link()
    for consumer, tag in ((1, "leaves"), (2, "stays")):
        await _attach(house, link, queue_id, consumer, tag)
    await link.send(detaches=[1])
    await link.until(lambda: any(1 in frame.detached for frame in link.frames))
    other = await house.link(origin=1001)
    await _attach(house, other, queue_id, 1, "lost")
    await other.close()
    await link.until(lambda: len(heard) == 5)
    await house.delete("q")
    await link.until(lambda: len(heard) == 6)
    assert [(type(facts), facts.tag) for facts in heard] == [
        (ConsumerAttached, "leaves"),
        (ConsumerAttached, "stays"),
        (ConsumerDetached, "leaves"),
        (ConsumerAttached, "lost"),
        (ConsumerDetached, "lost"),
        (ConsumerCancelled, "stays"),
    ]
    assert {(facts.virtual_host, facts.queue, facts.queue_id, facts.connection) for facts in heard} == {
        ("/", "q", queue_id, "7.1")
    }
    assert heard[-1].reason == "queue deleted"


async def test_moved(house: House, heard: _Heard) -> None:
    """A consumer whose partition moves is cancelled for that reason."""
    queue_id, link = await house.declare("q"), await house.link()
    await _attach(house, link, queue_id, 1, "c")
    await house.queues.pop("queue-1").stop()
    assert [type(facts) for facts in heard] == [ConsumerAttached, ConsumerCancelled]
    assert heard[-1].reason == "partition moved"
