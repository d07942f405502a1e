"""A store for the router's tests: leases, origins and records in memory, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from services.common.errors import Fenced
from services.common.grpc_errors import abort
from services.common.grpc_server import Server
from services.rpc import store_pb2, store_pb2_grpc


class MemoryStore(store_pb2_grpc.StoreServicer):
    """What a store does for a router; `records` and `puts` are there to be looked at."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], store_pb2.Record] = {}
        self.puts: list[store_pb2.PutRecordsRequest] = []
        self.holder = ""
        self.epoch = 0
        self.incarnation = 1
        self.members: dict[str, str] = {}  # routers → address
        self.reserved = ""  # the one member that may have the lease
        self.silent = False  # renews nothing
        self.delay = 0.0  # of a write, as a disk has it
        self.tells = asyncio.Event()  # whoever watches records is told of them
        self.tells.set()
        self._origin = 0
        self._changed = asyncio.Event()
        self._written = asyncio.Event()
        self._server: Server | None = None

    async def start(self, address: str) -> None:
        self._server = Server(address, ["hopline.store.Store"])
        store_pb2_grpc.add_StoreServicer_to_server(self, self._server.grpc)
        await self._server.listen()

    async def stop(self) -> None:
        assert self._server
        await self._server.stop(0)

    def lose_memory(self) -> None:
        """As after a restart: transient records are gone."""
        self.incarnation += 1
        self.records = {key: record for key, record in self.records.items() if not record.transient}

    def hold(self, member: str, address: str) -> None:
        """The member has the lease."""
        self.holder, self.members[member] = member, address
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def AllocateOrigin(self, request: Any, context: Any) -> store_pb2.Origin:  # noqa: N802
        self._origin += 1
        return store_pb2.Origin(origin=self._origin, incarnation=self.incarnation)

    async def KeepAlive(self, _requests: Any, context: Any) -> None:  # noqa: N802
        while isinstance(request := await context.read(), store_pb2.KeepAliveRequest):
            while self.silent:
                await asyncio.sleep(0.01)
            await context.write(self._renewed(request))

    def _renewed(self, request: store_pb2.KeepAliveRequest) -> store_pb2.KeepAliveReply:
        before = self._table()
        if request.leaving:
            self.members.pop(request.member, None)
            self.holder = "" if self.holder == request.member else self.holder
        else:
            self.members[request.member] = request.address
        if request.acquire and not self.holder and self.reserved in {"", request.member}:
            self.holder = request.member
            self.epoch += 1
        if self._table() != before:
            self._tell()
        leases = self._table().leases
        return store_pb2.KeepAliveReply(leases=leases, ttl_ms=request.ttl_ms, incarnation=self.incarnation)

    async def WatchLeases(self, request: Any, context: Any) -> AsyncIterator[store_pb2.LeaseTable]:  # noqa: N802
        while True:
            changed = self._changed
            yield self._table()
            await changed.wait()

    def _table(self) -> store_pb2.LeaseTable:
        lease = store_pb2.Lease(
            name="router", epoch=self.epoch, member=self.holder, address=self.members.get(self.holder, "")
        )
        members = [
            store_pb2.Member(member=member, role="router", address=address) for member, address in self.members.items()
        ]
        return store_pb2.LeaseTable(leases=[lease] if self.holder else [], members=members)

    async def PutRecords(self, request: Any, context: Any) -> store_pb2.PutRecordsReply:  # noqa: N802
        if request.fence.epoch != self.epoch:
            await abort(context, Fenced("newer epoch"))
        await asyncio.sleep(self.delay)
        self.puts.append(request)
        for record in request.puts:
            self.records[record.kind, record.key] = record
        for record in request.deletes:
            self.records.pop((record.kind, record.key), None)
        self._written.set()
        self._written = asyncio.Event()
        return store_pb2.PutRecordsReply(version=len(self.puts))

    async def ListRecords(self, request: Any, context: Any) -> AsyncIterator[store_pb2.Records]:  # noqa: N802
        yield self._snapshot(request.kinds)

    async def WatchRecords(self, request: Any, context: Any) -> AsyncIterator[store_pb2.Records]:  # noqa: N802
        """A whole snapshot after each write."""
        while True:
            await self.tells.wait()
            written = self._written
            yield self._snapshot(request.kinds)
            await written.wait()

    def _snapshot(self, kinds: Sequence[str]) -> store_pb2.Records:
        records = [record for record in self.records.values() if record.kind in kinds]
        return store_pb2.Records(records=records, snapshot=True, last=True, incarnation=self.incarnation)
