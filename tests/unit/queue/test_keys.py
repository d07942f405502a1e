"""A column of routing keys, which a queue process reads, and writes to those that read it."""

from __future__ import annotations

import pytest

from services.common.message.facts import Facts
from tests.support.queue_house import House

_KEYS = [f"new {number}" for number in range(9)]
_FACTS = [Facts("/", "x", key, "f") for key in _KEYS]


@pytest.mark.parametrize("reads_keys", [False, True])
async def test_messages_with_new_keys(house: House, reads_keys: bool) -> None:
    """Each comes with its own, whoever says and hears it how; the first frame tells that this process reads them."""
    queue_id = await house.declare("q")
    publisher, link = await house.link(), await house.link(origin=2000, reads_keys=reads_keys)
    await link.attach(queue_id, settled=True)
    await publisher.publish_facts(queue_id, [b"x"] * 9, _FACTS[0]._replace(routing_key=""), _KEYS)
    await link.until(lambda: len(link.bodies) == 9)
    assert link.facts == _FACTS
    assert [bool(frame.deliveries.keys) for frame in link.frames if frame.deliveries.uids] == [reads_keys]
    said = [frame.reads_keys for frame in publisher.frames]
    assert said == [True] + [False] * (len(said) - 1)


async def test_one_message_with_a_column(house: House) -> None:
    """Whatever says it: ours say one message's key with its other facts."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.attach(queue_id, settled=True)
    await link.publish_facts(queue_id, [b"x"], _FACTS[0]._replace(routing_key=""), _KEYS[:1])
    await link.until(lambda: link.bodies)
    assert link.facts == _FACTS[:1]
