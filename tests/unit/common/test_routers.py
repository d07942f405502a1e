from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from services.common.clients.routers import Replaced, Router, Routers


async def test_a_channel_is_closed() -> None:
    """A call whose channel is closed under it is one to a former router; its caller is not cancelled."""
    routers = Routers(cast("Any", None), "test")
    writer = routers.writer = Router("router-1", "unix:nowhere")
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(closed.cancel)

    async def call() -> None:
        await closed

    with pytest.raises(Replaced):
        await routers.while_writing(writer, call())


class Compared(Router):
    """Counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)

    __hash__ = Router.__hash__


async def test_many_changes_at_once() -> None:
    """Each of a thousand looks at the router that writes once, and at no other change."""
    routers = Routers(cast("Any", None), "test")
    writer = routers.writer = Compared("router-1", "unix:nowhere")
    answered = asyncio.Event()
    changes = [asyncio.create_task(routers.while_writing(writer, answered.wait())) for _ in range(1000)]
    await asyncio.sleep(0)
    assert Compared.times == len(changes)
    answered.set()
    assert all(await asyncio.gather(*changes))


async def test_another_router_writes_before_the_call() -> None:
    """A change that is asked of a former router ends at once."""
    routers = Routers(cast("Any", None), "test")
    routers.writer = Router("router-2", "unix:nowhere")
    with pytest.raises(Replaced):
        await routers.while_writing(Router("router-1", "unix:nowhere"), asyncio.Event().wait())
