"""Watches of a store that goes away, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from structlog.testing import capture_logs

from services.common.clients.store import StoreClient
from services.common.grpc_server import Server
from services.rpc import store_pb2 as pb
from services.rpc import store_pb2_grpc
from tests.support.programs import until

WATCHES = 5


class Store(store_pb2_grpc.StoreServicer):
    """Says one thing to each watcher."""

    async def WatchRecords(self, _request: object, _context: object) -> AsyncIterator[pb.Records]:  # type: ignore[override]  # noqa: N802
        yield pb.Records(snapshot=True, last=True)
        await asyncio.Event().wait()


async def _serve(address: str) -> Server:
    server = Server(address, ["hopline.store.Store"])
    store_pb2_grpc.add_StoreServicer_to_server(Store(), server.grpc)
    await server.listen()
    return server


async def test_an_interruption_is_told_once(tmp_path: Path) -> None:
    """A store that ends takes all watches with it: the log has one line for each time, not one for each watch."""
    address = f"unix:{tmp_path}/store.sock"
    client, heard, server = StoreClient(address), [0] * WATCHES, await _serve(address)

    async def follow(number: int) -> None:
        async for _ in client.watch_records():
            heard[number] += 1

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(number)) for number in range(WATCHES)]
        with capture_logs() as told:
            for times in (1, 2):
                await until(lambda times=times: heard == [times] * WATCHES)  # type: ignore[misc]
                await server.stop(0)
                await until(lambda times=times: len(told) >= times)  # type: ignore[misc]
                server = await _serve(address)
            await until(lambda: heard == [3] * WATCHES)
        for task in tasks:
            task.cancel()
    await server.stop(0)
    await client.close()
    assert [line["event"] for line in told] == ["watches of the store are interrupted, will reconnect"] * 2
