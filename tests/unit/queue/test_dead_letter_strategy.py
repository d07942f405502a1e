"""What becomes of dead letters for which there is no way (RabbitMQ 3.10, dead-letter strategies of quorum queues)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from services.queue.machine.queue import Queue
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House
from tests.unit.queue.test_hand_over import another_owner
from tests.unit.queue.test_policies import policy

AT_LEAST_ONCE: Final = {
    "message_ttl": 1,
    "dead_letter_exchange": "dlx",
    "dead_letter_routing_key": "parked",
    "dead_letter_strategy": "at-least-once",
}
KEPT: Final = {**AT_LEAST_ONCE, "overflow": "reject-publish"}


async def done_with(house: House) -> None:
    """Until no message is left."""
    async with asyncio.timeout(10):
        while house.queues["queue-1"]._host.account.used:
            await asyncio.sleep(0.01)


async def test_it_waits_for_a_way(house: House) -> None:
    """With at-least-once, where the queue refuses what is too much: until there is an exchange with a binding."""
    source, parked = await house.declare("source", **KEPT), await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"1", b"2"])
    await asyncio.sleep(0.3)
    assert not link.bodies
    await house.declare_exchange("dlx", "parked", "parked")
    await link.until(lambda: len(link.bodies) == 2)
    assert sorted(link.bodies) == [b"1", b"2"]


@pytest.mark.parametrize(
    "table",
    [
        {**AT_LEAST_ONCE},
        {**KEPT, "overflow": "drop-head"},
        {**KEPT, "dead_letter_strategy": "at-most-once"},
        {key: value for key, value in KEPT.items() if key != "dead_letter_strategy"},
    ],
)
async def test_it_is_dropped(house: House, table: dict[str, Any]) -> None:
    """With at-most-once, which is the default, and with a queue that drops its head, as in RabbitMQ."""
    source, parked = await house.declare("source", **table), await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"1"])
    await done_with(house)
    await house.declare_exchange("dlx", "parked", "parked")
    await link.publish(source, [b"2"])
    await link.until(lambda: link.bodies)
    assert link.bodies == [b"2"]


async def test_a_policy_shows_another_way(house: House) -> None:
    """What waits goes where its queue's policy says now."""
    words = {name.replace("_", "-"): value for name, value in KEPT.items()}
    await policy(house, "p", **words)
    source, parked = await house.declare("q"), await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"1"])
    await asyncio.sleep(0.3)
    await policy(house, "p", **words | {"dead-letter-exchange": ""})
    await link.until(lambda: link.bodies)
    assert link.bodies == [b"1"]


async def test_what_waits_counts(house: House) -> None:
    """As in RabbitMQ it is in its queue as long as nobody has it: a full one refuses publishes until there is a way."""
    source, parked = await house.declare("source", max_length=2, **KEPT), await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"1", b"2"])
    office = house.queues["queue-1"]._partitions._office
    await link.until(lambda: sum(map(len, office._open.values())) == 2)
    await link.publish(source, [b"3", b"4"])
    assert link.refusals() == [(0, 2, pb.OVERFLOW)]
    await house.declare_exchange("dlx", "parked", "parked")
    await link.until(lambda: len(link.bodies) == 2 and not office._open)
    await link.publish(source, [b"5"])
    await link.until(lambda: len(link.bodies) == 3)
    assert sorted(link.bodies) == [b"1", b"2", b"5"]
    assert len(link.refusals()) == 1


async def test_what_comes_back_to_its_own_queue(house: House) -> None:
    """A full queue whose letters are for itself has room for them, though nobody takes any."""
    its: dict[str, Any] = {**KEPT, "dead_letter_exchange": "", "dead_letter_routing_key": "q", "max_length": 2}
    del its["message_ttl"]
    queue_id = await house.declare("q", **its)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"])
    await link.attach(queue_id, messages=2)
    await link.until(lambda: len(link.bodies) == 2)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.REJECT, uids=link.uids)])
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    async with asyncio.timeout(60):
        while queue.ready_count < 2:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("table", [{**KEPT, "dead_letter_strategy": "at-most-once"}, AT_LEAST_ONCE])
async def test_what_does_not_wait_counts_not(house: House, table: dict[str, Any]) -> None:
    """Letters of other queues are under way for a moment, and keep nobody out meanwhile."""
    source = await house.declare("source", max_length=1, **table | {"dead_letter_exchange": ""})
    await house.declare("parked", max_length=0, overflow="reject-publish")
    link, office = await house.link(), house.queues["queue-1"]._partitions._office
    await link.publish(source, [b"1"])
    await link.until(lambda: any(letter.tries for its in office._open.values() for letter in its))
    await link.publish(source, [b"2"])
    assert not link.refusals()


async def test_its_queue_is_deleted(house: House) -> None:
    """Then it is not waited for any more."""
    source = await house.declare("source", **KEPT)
    link = await house.link()
    await link.publish(source, [b"1"])
    await asyncio.sleep(0.2)
    await house.delete("source")
    await done_with(house)


@pytest.mark.parametrize("dies", [True, False])
async def test_its_queue_gets_another_owner(house: House, monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    """Which finds it in the queue, and goes on."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    source, parked = await house.declare("source", durable=True, **KEPT), await house.declare("parked")
    link = await house.link()
    await link.publish(source, [b"1"], persistent=True)
    await asyncio.sleep(0.2)
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(parked)
    await house.declare_exchange("dlx", "parked", "parked")
    await link.until(lambda: link.bodies)
    assert link.bodies == [b"1"]


@pytest.mark.parametrize("strategy", ["at-most-once", "at-least-once"])
async def test_its_target_takes_it_later(house: House, strategy: str) -> None:
    """Whatever the strategy, it waits for a queue that has no room, and comes once."""
    said = {**KEPT, "dead_letter_exchange": "", "dead_letter_strategy": strategy}
    source = await house.declare("source", **said)
    parked = await house.declare("parked", max_length=1, overflow="reject-publish")
    link = await house.link()
    await link.publish(parked, [b"0"])
    await link.publish(source, [b"1", b"2"])
    await asyncio.sleep(0.3)
    await link.attach(parked)
    await link.until(lambda: len(link.bodies) == 3)
    assert sorted(link.bodies) == [b"0", b"1", b"2"]


async def test_its_target_is_full_by_its_former_policy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses what it would pass on by the new one, which its owner has not heard of: nothing is lost by that."""
    full = {"max-length": 1, "overflow": "reject-publish", "dead-letter-exchange": "none"}
    await policy(house, "p", **full)
    source = await house.declare("source", **KEPT | {"dead_letter_exchange": "", "dead_letter_routing_key": "q"})
    parked, link = await house.declare("q"), await house.link()
    await link.publish(parked, [b"0"])
    monkeypatch.setattr(Queue, "adopt", lambda *_: None)
    await policy(house, "p", **full | {"overflow": "reject-publish-dlx"})
    await link.publish(source, [b"1"])
    office = house.queues["queue-1"]._partitions._office
    await link.until(lambda: any(letter.tries for its in office._open.values() for letter in its))
    await link.attach(parked)
    await link.until(lambda: len(link.bodies) == 2)
    assert sorted(link.bodies) == [b"0", b"1"]
