"""Claims of more than goes in one turn of the event loop, where that is a few messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.queue.host import Host
from services.queue.links.link import PeerLink
from services.queue.machine import turn
from services.queue.machine.claims import Claims
from services.queue.machine.queue import Queue
from services.queue.machine.walk import Walk
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

FEW, MANY = 10, 95
BODIES = [b"%d" % number for number in range(MANY)]


def in_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A few messages go in one turn; gives how many are claimed, or looked at, in each step."""
    found = list[int]()
    expect, claim, some = Claims.expect, Queue.claim, Walk.some

    def expects(self: Claims, held: Any, *more: Any) -> None:
        found.append(len(held))
        expect(self, held, *more)

    def claims(self: Queue, held: Any, *more: Any) -> None:
        found.append(len(held))
        claim(self, held, *more)

    def looks(self: Walk, most: int) -> Any:
        found.append(most)
        return some(self, most)

    for most in ("AT_ONCE", "SCATTERED", "CLAIMED", "FOUND", "SEEN"):
        monkeypatch.setattr(turn, most, FEW)
    monkeypatch.setattr(Claims, "expect", expects)
    monkeypatch.setattr(Queue, "claim", claims)
    monkeypatch.setattr(Walk, "some", looks)
    return found


async def held_before(house: House, **more: Any) -> tuple[int, RawLink]:
    """All messages of a queue were a gateway's when its owner left."""
    queue_id, link = await house.declare("q", **more), await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, BODIES)
    await link.until(lambda: len(link.uids) == MANY, 8)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    return queue_id, link


async def waiting(house: House, **more: Any) -> tuple[int, RawLink, list[int]]:
    """All of them wait: that some are somebody's is not known yet."""
    queue_id, link = await house.declare("q", **more), await house.link()
    await link.publish(queue_id, BODIES)
    first = (1000 << 39) + 1
    return queue_id, link, list(range(first, first + MANY))


def holder(queue_id: int, held: list[int], **more: Any) -> pb.AttachConsumer:
    """Who is given nothing more."""
    return pb.AttachConsumer(consumer=7, queue_id=queue_id, again=True, held=held, **more)


def taker(queue_id: int) -> pb.AttachConsumer:
    return pb.AttachConsumer(consumer=8, queue_id=queue_id, messages=1000, bytes=1 << 40, again=True)


class Between:
    """What a test does in the middle of it all, once; `steps` as `in_steps` gives them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: list[int], does: Callable[[], object]) -> None:
        expect, self.done = Claims.expect, False

        def expects(its: Claims, *said: Any) -> None:
            expect(its, *said)
            if not self.done and len(steps) > 2:
                self.done = True
                does()

        monkeypatch.setattr(Claims, "expect", expects)


def stream_of(host: Host, origin: int) -> PeerLink:
    return next(each for each in host.links if each.origin == origin)
