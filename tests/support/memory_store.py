"""A store for the router's tests: leases, origins and records in memory, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from services.common.grpc_channel import Server
from services.rpc import store_pb2, store_pb2_grpc


class MemoryStore(store_pb2_grpc.StoreServicer):
    """What a store does for a router; `records` and `puts` are there to be looked at."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], store_pb2.Record] = {}
        self.puts: list[store_pb2.PutRecordsRequest] = []
        self.holder = ""
        self.epoch = 0
        self.incarnation = 1
        self.delay = 0.0  # of a write, as a disk has it
        self._origin = 0
        self._server: Server | None = None

    async def start(self, address: str) -> None:
        self._server = Server(["hopline.store.Store"])
        store_pb2_grpc.add_StoreServicer_to_server(self, self._server.grpc)
        await self._server.listen(address)

    async def stop(self) -> None:
        assert self._server
        await self._server.stop(0)

    def lose_memory(self) -> None:
        """As after a restart: transient records are gone."""
        self.incarnation += 1
        self.records = {key: record for key, record in self.records.items() if not record.transient}

    async def AllocateOrigin(self, request: Any, context: Any) -> store_pb2.Origin:  # noqa: N802
        self._origin += 1
        return store_pb2.Origin(origin=self._origin, incarnation=self.incarnation)

    async def KeepAlive(self, request: Any, context: Any) -> store_pb2.KeepAliveReply:  # noqa: N802
        if request.leaving and self.holder == request.member:
            self.holder = ""
        elif request.acquire and not self.holder:
            self.holder = request.member
            self.epoch += 1
        leases = [store_pb2.Lease(name="router", epoch=self.epoch, member=self.holder)] if self.holder else []
        return store_pb2.KeepAliveReply(leases=leases, ttl_ms=request.ttl_ms, incarnation=self.incarnation)

    async def PutRecords(self, request: Any, context: Any) -> store_pb2.PutRecordsReply:  # noqa: N802
        if request.fence.epoch != self.epoch:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "newer epoch")
        await asyncio.sleep(self.delay)
        self.puts.append(request)
        for record in request.puts:
            self.records[record.kind, record.key] = record
        for record in request.deletes:
            self.records.pop((record.kind, record.key), None)
        return store_pb2.PutRecordsReply(version=len(self.puts))

    async def ListRecords(self, request: Any, context: Any) -> AsyncIterator[store_pb2.Records]:  # noqa: N802
        records = [record for record in self.records.values() if record.kind in request.kinds]
        yield store_pb2.Records(records=records, snapshot=True, last=True, incarnation=self.incarnation)
