"""The topology's records in the store, written under the router's lease."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import structlog

from services.common.clients.routers import ROLE
from services.common.clients.store import StoreClient
from services.common.errors import BrokerError, Fenced, Unavailable
from services.common.remedies import STORE
from services.common.topology.records import Record, RecordKey
from services.router.lease import Lease
from services.rpc import store_pb2

_RETRY = 0.1

log = structlog.get_logger()


class RecordStore:
    """Lists and puts; waits as long as the store is away."""

    def __init__(self, store: StoreClient, lease: Lease) -> None:
        self._store = store
        self._lease = lease

    async def origin(self, member: str) -> int:
        """A number that was never given before."""
        while True:
            try:
                return (await self._store.allocate_origin(member))[0]
            except BrokerError as failure:
                await _wait("origin not allocated", failure)

    async def list(self, kinds: Iterable[str]) -> list[store_pb2.Record]:
        """All records of these kinds."""
        while True:
            try:
                return await self._store.list_records(kinds)
            except BrokerError as failure:
                await _wait("records not listed", failure)

    async def put(self, records: Mapping[RecordKey, Record | None]) -> None:
        """Returns when all are kept (durable ones: on disk); raises Fenced when the lease has a newer epoch.

        Whatever else the store answers is raised too: asked again, it would answer the same.
        """
        puts = [
            store_pb2.Record(kind=key.kind, key=key.key, value=record.value, transient=record.transient)
            for key, record in records.items()
            if record
        ]
        deletes = [store_pb2.Record(kind=key.kind, key=key.key) for key, record in records.items() if record is None]
        while True:
            fence = store_pb2.Fence(lease=ROLE, epoch=self._lease.epoch)
            try:
                await self._store.put_records(puts, deletes, fence)
            except Unavailable as failure:
                await _wait("records not put", failure)
            except Fenced as failure:
                # Unless the lease was renewed under a new epoch meanwhile: then nobody else had it.
                if fence.epoch == self._lease.epoch:
                    raise
                await _wait("records not put", failure)
            else:
                return


async def _wait(what: str, failure: BrokerError) -> None:
    log.warning(what, reason=failure.text, do=STORE)
    await asyncio.sleep(_RETRY)
