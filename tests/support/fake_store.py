"""The store's configuration records and lease tables in a dictionary, over real gRPC."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from services.common.errors import Overtaken
from services.common.grpc_errors import abort
from services.common.grpc_server import Server
from services.common.partition import lease_name
from services.rpc import store_pb2, store_pb2_grpc


class FakeStore(store_pb2_grpc.StoreServicer):
    def __init__(self) -> None:
        self.records: dict[tuple[str, str], store_pb2.Record] = {}
        self.table = store_pb2.LeaseTable()
        self.actors: list[str] = []  # users for whom records were put
        self.version = 0
        self.before_put: Callable[[store_pb2.PutRecordsRequest], object] = lambda _: None  # another writer is faster
        self._changed_at: dict[str, int] = {}  # by kind
        self._changed = asyncio.Event()
        self._server: Server | None = None

    async def start(self, address: str) -> None:
        self._server = Server(address, ["hopline.store.Store"])
        store_pb2_grpc.add_StoreServicer_to_server(self, self._server.grpc)
        await self._server.listen()
        await self._server.ready()

    async def stop(self) -> None:
        assert self._server
        await self._server.stop(0)

    def lease(self, partitions: Iterable[int], address: str, *, alive: bool = True) -> None:
        """The table that `WatchLeases` tells from now on."""
        member = store_pb2.Member(member="m1", role="queue", address=address)
        leases = [
            store_pb2.Lease(name=lease_name(number), epoch=1, member="m1", address=address) for number in partitions
        ]
        self._tell(store_pb2.LeaseTable(leases=leases, members=[member] if alive else []))

    def join(self, role: str, address: str) -> None:
        """One more member."""
        member = store_pb2.Member(member=address, role=role, address=address)
        self._tell(store_pb2.LeaseTable(leases=self.table.leases, members=[*self.table.members, member]))

    async def PutRecords(self, request: store_pb2.PutRecordsRequest, context: Any) -> store_pb2.PutRecordsReply:
        self.before_put(request)
        if any(self._changed_at.get(each.kind, 0) > each.version for each in request.unchanged):
            await abort(context, Overtaken("changed at the same time"))
        self.actors.append(request.actor)
        self.put(request.puts, request.deletes)
        return store_pb2.PutRecordsReply(version=self.version)

    def put(self, puts: Iterable[store_pb2.Record] = (), deletes: Iterable[store_pb2.Record] = ()) -> None:
        """A write by another process."""
        self.version += 1
        gone = [record for record in deletes if (record.kind, record.key) in self.records]
        self._changed_at.update((record.kind, self.version) for record in (*puts, *gone))
        for record in puts:
            self.records[record.kind, record.key] = record
        for record in deletes:
            self.records.pop((record.kind, record.key), None)
        self._tell(self.table)

    async def ListRecords(
        self, request: store_pb2.ListRecordsRequest, context: Any
    ) -> AsyncIterator[store_pb2.Records]:
        found = [record for record in self.records.values() if record.kind in request.kinds]
        yield store_pb2.Records(records=found, snapshot=True, last=True, version=self.version)

    async def WatchRecords(
        self, request: store_pb2.WatchRecordsRequest, context: Any
    ) -> AsyncIterator[store_pb2.Records]:
        while True:
            changed = self._changed
            found = [record for record in self.records.values() if record.kind in request.kinds]
            yield store_pb2.Records(records=found, snapshot=True, last=True, version=self.version)
            await changed.wait()

    async def WatchLeases(
        self, request: store_pb2.WatchLeasesRequest, context: Any
    ) -> AsyncIterator[store_pb2.LeaseTable]:
        while True:
            changed = self._changed
            yield self._table_of(request.role)
            await changed.wait()

    def _tell(self, table: store_pb2.LeaseTable) -> None:
        self.table = table
        self._changed.set()
        self._changed = asyncio.Event()

    def _table_of(self, role: str) -> store_pb2.LeaseTable:
        members = [member for member in self.table.members if member.role == role]
        return store_pb2.LeaseTable(leases=self.table.leases, members=members)
