"""How old a message is, its next owner knows too."""

from __future__ import annotations

import pytest

from services.common.clock import epoch_ms
from services.common.message.facts import Facts
from services.queue.partitions import partitions
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner

FACTS = Facts("/", "", "key", "amqp-0-9")


async def published(house: House, queue_id: int, *, persistent: bool) -> RawLink:
    """Two messages: one when it began, one later. Gives when that was, ms ago at most."""
    link = await house.link()
    await link.publish_facts(queue_id, [b"old"], FACTS._replace(persistent=persistent))
    began = epoch_ms()
    await link.until(lambda: epoch_ms() > began + 300)
    await link.publish_facts(queue_id, [b"new"], FACTS._replace(persistent=persistent))
    return link


@pytest.mark.parametrize(("persistent", "dies"), [(True, True), (True, False), (False, False)])
async def test_after_a_change_of_owner(
    house: House, monkeypatch: pytest.MonkeyPatch, *, persistent: bool, dies: bool
) -> None:
    """By what the journal says of its batch, and by what was handed over."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True)
    await published(house, queue_id, persistent=persistent)
    before = epoch_ms() - 150
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id, 1, replay_ms=epoch_ms() - before)
    await link.until(lambda: link.bodies)
    assert link.bodies == [b"new"]
    assert await link.ready(queue_id, 1) == 1
    await link.attach(queue_id, 2)
    await link.until(lambda: len(link.bodies) == 2)


async def test_a_newcomer_and_one_that_comes_again(house: House) -> None:
    """The one gets what comes behind what is there, the other what came since it subscribed."""
    queue_id = await house.declare("q")
    link = await published(house, queue_id, persistent=False)
    await link.attach(queue_id, 1, replay_ms=0)
    await link.publish(queue_id, [b"next"])
    await link.until(lambda: link.bodies == [b"next"])
    await link.send(detaches=[1])
    await link.attach(queue_id, 2, replay_ms=150, again=True)
    await link.until(lambda: link.bodies == [b"next", b"new"])
