"""What was let go of what stood aside is known to each next owner: what somebody had comes as redelivered."""

from __future__ import annotations

import asyncio

import pytest

from services.common.clock import epoch_ms
from services.queue.partitions import partitions
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner
from tests.unit.queue.test_waits_move import publish

HOLD = {"holdOnPublishEnabled": True}


@pytest.fixture(autouse=True)
def _killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners hand nothing over."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())


async def told(house: House, queue_id: int, origin: int) -> dict[bytes, bool]:
    """The one message that a consumer gets, and whether it comes again; it is not settled."""
    link: RawLink = await house.link(origin=origin)
    await link.attach(queue_id)
    await link.until(lambda: len(link.bodies) == 1)
    await asyncio.sleep(0.2)
    await link.close()
    return dict(zip(link.bodies, [run.redelivered for run in link.runs for _ in range(run.count)], strict=True))


async def test_due_without_an_owner(house: House) -> None:
    """Nobody had it then; the next owner delivers it, and dies as well."""
    queue_id = await house.declare("q", durable=True, table=HOLD)
    link, now = await house.link(), epoch_ms()
    await publish(link, queue_id, [b"due", b"late"], [now + 600, now + 60_000])
    await link.close()
    await house.queues.pop("queue-1").stop()
    await asyncio.sleep(max(0, now + 700 - epoch_ms()) / 1000)
    await house.start_queue("queue-1")
    assert await told(house, queue_id, 1001) == {b"due": False}
    await another_owner(house)
    assert await told(house, queue_id, 1002) == {b"due": True}


@pytest.mark.parametrize("waits", [True, False])
async def test_due_when_it_came(house: House, waits: bool) -> None:
    """Delivered at once, whether or not another one waits."""
    queue_id = await house.declare("q", durable=True, table=HOLD)
    link = await house.link()
    if waits:
        await publish(link, queue_id, [b"late"], [epoch_ms() + 60_000])
        await asyncio.sleep(0.2)
    await publish(link, queue_id, [b"past"], [epoch_ms() - 5])
    await link.close()
    assert await told(house, queue_id, 1001) == {b"past": False}
    await another_owner(house)
    assert await told(house, queue_id, 1002) == {b"past": True}
