"""A link to a process that is gone."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from services.common.clients.queue_link import QueueLink
from services.rpc import queue_pb2 as pb


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As in a process that has little to do: what only the collector finds stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("given_up", [True, False])
async def test_a_stopped_link_connects_no_more(given_up: bool) -> None:
    """A process that has left for good is not called again."""
    attempts = 0

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    async with asyncio.timeout(60), await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        link = QueueLink("queue-1", f"127.0.0.1:{port}", lambda member: pb.Hello(member=member), Mock())
        link.start()
        while attempts < 2:
            await asyncio.sleep(0.01)
        if given_up:
            link.give_up()
        await link.stop()
        while attempts:  # those that were under way
            attempts = 0
            await asyncio.sleep(1)
