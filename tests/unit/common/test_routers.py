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
