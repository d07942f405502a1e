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


class BreaksOff(store_pb2_grpc.StoreServicer):
    """Tells the first watch half of what there is; by the next one that is gone, and there is something else."""

    def __init__(self) -> None:
        self.watches = 0

    async def WatchRecords(self, _request: object, _context: object) -> AsyncIterator[pb.Records]:  # type: ignore[override]  # noqa: N802
        self.watches += 1
        if self.watches == 1:
            yield _part("gone")
            return
        yield _part("there")
        yield _part("there, too", last=True)
        yield pb.Records(records=[pb.Record(key="news")])
        await asyncio.Event().wait()


def _part(key: str, *, last: bool = False) -> pb.Records:
    return pb.Records(records=[pb.Record(key=key)], snapshot=True, last=last)


async def _serve(address: str, store: store_pb2_grpc.StoreServicer | None = None) -> Server:
    server = Server(address, ["hopline.store.Store"])
    store_pb2_grpc.add_StoreServicer_to_server(store or Store(), server.grpc)
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


async def test_a_snapshot_that_breaks_off(tmp_path: Path) -> None:
    """Nothing of it is told: who follows would take it for the beginning of the next one, with what is gone by then."""
    address, heard = f"unix:{tmp_path}/store.sock", list[str]()
    client, server = StoreClient(address), await _serve(address, BreaksOff())
    async with asyncio.timeout(10):
        async for batch in client.watch_records():
            heard += [record.key for record in batch.records]
            if not batch.snapshot:
                break
    await client.close()
    await server.stop(0)
    assert heard == ["there", "there, too", "news"]
