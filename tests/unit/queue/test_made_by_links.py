"""Queues that links of AMQP 1.0 have made, when these links have ended."""

from __future__ import annotations

import pytest

from services.queue.links import link as links
from services.queue.machine import use
from services.queue.timers import Timers
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House


@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize("lifetime", ["no-links", "no-links-or-messages"])
async def test_a_moment_without_a_consumer(
    house: House, monkeypatch: pytest.MonkeyPatch, lifetime: str, returns: bool
) -> None:
    """It is not deleted because the stream of its last consumer broke, but because the gateway stays away."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 60.0 if returns else 0.5)
    monkeypatch.setattr(use, "_AWAITED_MS", 60_000 if returns else 1000)
    host = house.queues["queue-1"]._host
    queue_id = await house.declare_by_link("q", lifetime)
    link = await house.link(origin=1001, tells=True)
    await link.attach(queue_id)
    await house.end_link()
    await link.until(lambda: not host.registry.definitions[queue_id].kept)
    await link.close()
    await link.until(lambda: not len(host.registry.queues[queue_id].consumers))
    await Timers(host, lambda: True).tick(host.now())
    assert queue_id not in host.registry.deleting
    if returns:
        attached = await (await house.link(origin=1001, tells=True)).attach(queue_id, again=True)
        assert attached.reason == pb.NONE
    await link.until(lambda: returns or queue_id not in house.topology.queues)
