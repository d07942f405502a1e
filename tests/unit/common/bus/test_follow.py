"""Following the bus ends, in any state of the NATS client."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from services.common.bus import nats_link
from services.common.bus.follow import follow
from tests.support.nats_server import NatsServer


async def test_a_client_that_does_not_close(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its close is bounded in time: it waits for tasks that may be gone."""
    await server.start()
    monkeypatch.setattr(nats_link, "_FAREWELL_SECONDS", 0.01)
    closes, closing = Client.close, asyncio.Event()

    async def hangs(self: Client) -> None:
        await closes(self)
        closing.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Client, "close", hangs)
    following = asyncio.ensure_future(anext(follow(server.address)))
    await asyncio.sleep(0.1)
    following.cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(following, return_exceptions=True)
    assert closing.is_set()
