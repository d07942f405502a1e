"""NATS's client is connected within a time, whatever it makes of being cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common import runtime
from services.common.bus.nats_client import connect


class Deaf:
    """Takes so many cancellations for answers of servers, and tries the next server."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def connect(self, *_servers: str, **_options: object) -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if not self.times:
                    raise
                self.times -= 1


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_it_ends(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """It is cancelled until it has ended: the caller learns that time is up."""
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)
    client: Any = Deaf(times)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            await connect(client, 0.01, "nats://127.0.0.1:4222")
    assert client.times == 0


async def test_the_caller_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the client, and nothing of it goes on."""
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)
    client: Any = Deaf(1)
    calling = asyncio.ensure_future(connect(client, 60, "nats://127.0.0.1:4222"))
    await asyncio.sleep(0.01)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert client.times == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
