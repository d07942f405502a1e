"""The topology's records in the store, written under the router's lease."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import grpc
import grpc.aio
import structlog

from services.common.errors import Fenced, from_rpc
from services.router.lease import ROLE, Lease
from services.router.topology.effects import Record, RecordKey
from services.rpc import store_pb2, store_pb2_grpc

_RETRY = 0.1
_REFUSED = (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED)

log = structlog.get_logger()


class RecordStore:
    """Lists and puts; waits as long as the store is away."""

    def __init__(self, store: store_pb2_grpc.StoreAsyncStub, lease: Lease) -> None:
        self._store = store
        self._lease = lease

    async def origin(self, member: str) -> int:
        """A number that was never given before."""
        while True:
            try:
                return (await self._store.AllocateOrigin(store_pb2.AllocateOriginRequest(name=member))).origin
            except grpc.aio.AioRpcError as failure:
                await _wait("origin not allocated", failure)

    async def list(self, kinds: Iterable[str]) -> list[store_pb2.Record]:
        """All records of these kinds."""
        request = store_pb2.ListRecordsRequest(kinds=kinds)
        while True:
            try:
                return [record async for part in self._store.ListRecords(request) for record in part.records]
            except grpc.aio.AioRpcError as failure:
                await _wait("records not listed", failure)

    async def put(self, records: Mapping[RecordKey, Record | None]) -> None:
        """Returns when all are kept (durable ones: on disk); raises Fenced when the lease has a newer epoch."""
        puts = [
            store_pb2.Record(kind=key.kind, key=key.key, value=record.value, transient=record.transient)
            for key, record in records.items()
            if record
        ]
        deletes = [store_pb2.Record(kind=key.kind, key=key.key) for key, record in records.items() if record is None]
        while True:
            fence = store_pb2.Fence(lease=ROLE, epoch=self._lease.epoch)
            try:
                await self._store.PutRecords(store_pb2.PutRecordsRequest(puts=puts, deletes=deletes, fence=fence))
            except grpc.aio.AioRpcError as failure:
                # Unless the lease was renewed under a new epoch meanwhile: then nobody else had it.
                if failure.code() in _REFUSED and fence.epoch == self._lease.epoch:
                    raise Fenced(f"the store refused the topology's records: {from_rpc(failure).text}") from failure
                await _wait("records not put", failure)
            else:
                return


async def _wait(what: str, failure: grpc.aio.AioRpcError) -> None:
    log.warning(what, reason=failure.details())
    await asyncio.sleep(_RETRY)
