"""A bus, a store, and filers between them, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.ledger import stream
from services.common.ledger.ledger import Ledger
from services.common.ledger.place import LedgerPlace
from services.mgmt.ledger.filer import Filer
from services.rpc.ledger_pb2 import ENQUEUED
from services.store.service import Service as StoreService
from tests.support.filed_ledger import FiledLedger
from tests.support.nats_server import NatsServer


class Office:
    """A bus, a store, and filers; `tell` has an instance tell one row."""

    def __init__(self, folder: Path, bus: Path | None = None) -> None:
        self.server = NatsServer(bus or folder)
        self.settings = Settings(
            data=folder, nats_url=self.server.address, store_provider="memory", ledger_seconds=0.3, run=folder
        )
        self.filed = FiledLedger(folder)
        self._store = StoreService(self.settings)
        self._client: StoreClient = None  # type: ignore[assignment]
        self._filers: list[Filer] = []
        self._ledgers: dict[str, Ledger] = {}

    async def start(self) -> None:
        await self.server.start()
        await self._store.start()
        self._client = StoreClient(self.settings.address_of("store"))

    async def stop(self) -> None:
        for filer in list(self._filers):
            await self.leave(filer)
        for ledger in self._ledgers.values():
            await ledger.stop()
        await self._client.close()
        await self._store.stop()
        self.server.kill()

    def join(self, name: str = "mgmt-1") -> Filer:
        filer = Filer(self.settings, self._client, name)
        filer.start()
        self._filers.append(filer)
        return filer

    async def leave(self, filer: Filer) -> None:
        self._filers.remove(filer)
        await filer.stop()

    def instance(self, name: str) -> Ledger:
        if name not in self._ledgers:
            self._ledgers[name] = Ledger(self.settings, "queue", name)
            self._ledgers[name].start()
        return self._ledgers[name]

    def tell(self, name: str, uid: int) -> None:
        self.instance(name).recorder.record(ENQUEUED, LedgerPlace("/", queue="q"), [uid])

    def tell_much(self, name: str) -> None:
        """More than fits into the last page of a file."""
        self.instance(name).recorder.record(ENQUEUED, LedgerPlace("/", queue="q"), range(10_000, 40_000, 2))

    def uids(self) -> list[int]:
        return sorted(row["first_uid"] for row in self.filed.rows("stages"))

    def gaps(self) -> list[tuple[Any, ...]]:
        columns = ("instance", "first_row", "last_row", "count", "reason")
        return [tuple(row[column] for column in columns) for row in self.filed.rows("gaps")]

    async def until_stream_bytes(self, count: int) -> None:
        async with asyncio.timeout(20):
            while await self.stream_bytes() != count:
                await asyncio.sleep(0.05)

    async def stream_bytes(self) -> int | None:
        client = await nats.connect(self.settings.nats_url)
        info = await client.jetstream().stream_info(stream.NAME)
        await client.close()
        return info.config.max_bytes


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)


@asynccontextmanager
async def opened(folder: Path, bus: Path | None = None) -> AsyncIterator[Office]:
    office = Office(folder, bus)
    await office.start()
    try:
        yield office
    finally:
        await office.stop()
