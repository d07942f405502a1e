"""The store's configuration records and lease tables in a dictionary, over real gRPC."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from services.common.grpc_server import Server
from services.common.partition import lease_name
from services.rpc import store_pb2, store_pb2_grpc


class FakeStore(store_pb2_grpc.StoreServicer):
    def __init__(self) -> None:
        self.records: dict[tuple[str, str], store_pb2.Record] = {}
        self.table = store_pb2.LeaseTable()
        self.actors: list[str] = []  # the users for whom records were put
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
        self.actors.append(request.actor)
        for record in request.puts:
            self.records[record.kind, record.key] = record
        for record in request.deletes:
            self.records.pop((record.kind, record.key), None)
        self._tell(self.table)
        return store_pb2.PutRecordsReply(version=1)

    async def ListRecords(
        self, request: store_pb2.ListRecordsRequest, context: Any
    ) -> AsyncIterator[store_pb2.Records]:
        found = [record for record in self.records.values() if record.kind in request.kinds]
        yield store_pb2.Records(records=found, snapshot=True, last=True)

    async def WatchRecords(
        self, request: store_pb2.WatchRecordsRequest, context: Any
    ) -> AsyncIterator[store_pb2.Records]:
        while True:
            changed = self._changed
            found = [record for record in self.records.values() if record.kind in request.kinds]
            yield store_pb2.Records(records=found, snapshot=True, last=True)
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
