"""Policies as a queue process hears of them, and the next owner of a queue."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from services.common.arguments import policies
from services.queue.machine.queue import Queue
from services.rpc.router_pb2 import ChangeQueue, ChangeRequest, Policy, PolicyKey
from tests.support.queue_house import House


async def policy(house: House, name: str, **says: Any) -> None:
    told = Policy(name=name, pattern="^q", apply_to="queues", definition=policies.dumped(says))
    await house.topology.change(ChangeRequest(virtual_host="/", set_policy=told))


def owned(house: House, queue_id: int) -> Queue:
    [found] = [each for one in house.queues.values() if (each := one._host.registry.queues.get(queue_id))]
    return found


async def test_when_it_is_answered_it_counts(house: House) -> None:
    """Of queues that are there, of those that come, and no more once it is cleared."""
    before, numbers = await house.declare("q1"), count(1)
    link = await house.link()
    await link.publish(before, [b"m"] * 5)
    await policy(house, "short", **{"max-length": 2})
    assert owned(house, before).options.max_length == 2
    assert owned(house, await house.declare("q2")).options.max_length == 2
    assert owned(house, await house.declare("other")).options.max_length is None
    async with asyncio.timeout(10):
        while await link.ready(before, next(numbers)) != 2:
            await asyncio.sleep(0.01)
    await policy(house, "short", **{"message-ttl": 7})
    assert (owned(house, before).options.max_length, owned(house, before).options.ttl_ms) == (None, 7)
    await house.topology.change(ChangeRequest(virtual_host="/", clear_policy=PolicyKey(name="short")))
    assert owned(house, before).options.ttl_ms is None


async def test_under_the_next_owner(house: House) -> None:
    """One that takes the queue over begins with it."""
    queue_id = await house.declare("q", durable=True)
    await policy(house, "short", **{"max-length": 2, "overflow": "reject-publish"})
    await house.start_queue("queue-2")
    await house.queues.pop("queue-1").stop()
    link = await house.link("queue-2")
    await link.publish(queue_id, [b"m"] * 5)
    assert await link.ready(queue_id, 1) == 2
    assert owned(house, queue_id).options.overflow == "reject-publish"


async def test_changed_arguments(house: House) -> None:
    """Count when the change is answered, beside policies, and under the next owner."""
    queue_id = await house.declare("q", durable=True)
    changed = b'{"x-max-length": 2, "x-overflow": "reject-publish", "x-dead-letter-exchange": "dlx"}'
    await house.topology.change(ChangeRequest(virtual_host="/", change_queue=ChangeQueue(name="q", changed=changed)))
    assert owned(house, queue_id).options.max_length == 2
    await policy(house, "short", **{"max-length": 9, "message-ttl": 60_000})
    await house.start_queue("queue-2")
    await house.queues.pop("queue-1").stop()
    link = await house.link("queue-2")
    await link.publish(queue_id, [b"m"] * 5)
    assert await link.ready(queue_id, 1) == 2
    options = owned(house, queue_id).options
    assert (options.max_length, options.overflow, options.dead_letter_exchange) == (2, "reject-publish", "dlx")
    assert options.ttl_ms == 60_000
