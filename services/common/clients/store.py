"""The store's client: its RPCs as methods, its errors as types, its streams reconnecting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import structlog

from services.common.audit.acting import acting
from services.common.clients.calls import result
from services.common.clients.peer import Peer
from services.common.clients.renewals import Renewals
from services.common.clients.store_journal import Journal
from services.common.clients.whole_snapshots import whole_snapshots
from services.common.errors import BrokerError
from services.common.partition import partition_in
from services.rpc import store_pb2 as pb
from services.rpc.store_pb2_grpc import StoreStub

if TYPE_CHECKING:
    from services.rpc.store_pb2_grpc import StoreAsyncStub

__all__ = ["Journal", "Read", "StoreClient"]

T = TypeVar("T")

_RETRY_SECONDS = 0.1
# Long enough for a store that restarts to recover from its disk.
_PATIENCE = 30.0
_AT_ONCE = 1.0

log = structlog.get_logger()


class Read(NamedTuple):
    """Records as they were at one moment, and what is to be unchanged where a change rests on them."""

    records: list[pb.Record]
    unchanged: list[pb.Unchanged]


class StoreClient:
    """Everything but the journal, which has a channel of its own (`Journal`), so that large frames do not delay leases.

    Calls wait for a store that is away, up to a deadline, and then raise Unavailable; an error that the store answers
    is raised as its own type.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._peer: Peer[StoreAsyncStub] = Peer(address, StoreStub, service="the store")
        self._renewals: dict[str, Renewals] = {}  # by member
        self._interrupted = False

    async def close(self) -> None:
        """Ends all calls and watches."""
        await self._peer.close()

    async def allocate_origin(self, name: str) -> tuple[int, int]:
        """A number that was never given before, and the store's incarnation; `name` is for logs."""
        request = pb.AllocateOriginRequest(name=name)
        reply = await self._peer.result(
            lambda stub, left: stub.AllocateOrigin(request, wait_for_ready=True, timeout=left), _PATIENCE
        )
        return reply.origin, reply.incarnation

    async def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109 - as a gRPC deadline
        """Renews, releases and acquires. Raises Unavailable after `timeout` seconds: then the outcome is not known."""
        renewals = self._renewals.get(request.member)
        if renewals is None:
            renewals = self._renewals[request.member] = Renewals(self._peer)
        return await renewals.ask(request, timeout)

    async def leases(self, role: str) -> pb.LeaseTable:
        """The lease table of `role` as it is now. Raises Unavailable when the store does not answer at once."""
        request, stub = pb.WatchLeasesRequest(role=role), self._peer.stub
        call = stub.WatchLeases(request, timeout=_AT_ONCE)
        try:
            return await result(anext(aiter(call)))
        except BrokerError as failure:
            self._peer.judge(failure, stub)
            raise
        finally:
            call.cancel()

    def watch_leases(self, role: str) -> AsyncIterator[pb.LeaseTable]:
        """The lease table of `role`, whole, now and at each change; reconnects for ever."""
        request = pb.WatchLeasesRequest(role=role)
        return self._watch(lambda stub: stub.WatchLeases(request, wait_for_ready=True))

    async def put_records(
        self,
        puts: Iterable[pb.Record] = (),
        deletes: Iterable[pb.Record] = (),
        fence: pb.Fence | None = None,
        unchanged: Iterable[pb.Unchanged] = (),
    ) -> int:
        """Puts and deletes (kind and key) in one commit; gives the version when durable.

        Raises Fenced, and Overtaken where something is not as it was that was to be `unchanged`.
        """
        request = pb.PutRecordsRequest(puts=puts, deletes=deletes, fence=fence, actor=acting(), unchanged=unchanged)
        reply = await self._peer.result(
            lambda stub, left: stub.PutRecords(request, wait_for_ready=True, timeout=left), _PATIENCE
        )
        return reply.version

    async def list_records(self, kinds: Iterable[str] = ()) -> list[pb.Record]:
        """All records of `kinds`; of all kinds when none are given."""
        return [record for part in await self._listed(kinds) for record in part.records]

    async def read_records(self, *kinds: str) -> Read:
        """The same, for a change that rests on them: see `decided_again`."""
        parts = await self._listed(kinds)
        unchanged = [pb.Unchanged(kind=kind, version=parts[0].version) for kind in kinds]
        return Read([record for part in parts for record in part.records], unchanged)

    async def _listed(self, kinds: Iterable[str]) -> list[pb.Records]:
        request = pb.ListRecordsRequest(kinds=kinds)
        return await self._peer.result(
            lambda stub, left: _all(stub.ListRecords(request, wait_for_ready=True, timeout=left)), _PATIENCE
        )

    def watch_records(self, kinds: Iterable[str] = ()) -> AsyncIterator[pb.Records]:
        """All records of `kinds`, then changes; reconnects for ever.

        A message with `snapshot` that follows one with `last` (or is the first) begins a new snapshot: forget what was
        before it. A snapshot comes first, after a reconnect, and when this watcher was too slow for the changes. Of one
        that breaks off nothing comes.
        """
        request = pb.WatchRecordsRequest(kinds=kinds)
        return self._watch(lambda stub: whole_snapshots(stub.WatchRecords(request, wait_for_ready=True)))

    async def commit_transaction(self, transaction: int, parts: int) -> pb.TransactionOutcome:
        """Decides a transaction of which exactly `parts` frames are staged; asked again, gives the same decision."""
        request = pb.CommitTransactionRequest(transaction=transaction, parts=parts)
        return await self._peer.result(
            lambda stub, left: stub.CommitTransaction(request, wait_for_ready=True, timeout=left), _PATIENCE
        )

    async def resolve_transaction(self, transaction: int) -> pb.TransactionOutcome:
        """The decision; aborts a transaction that is not decided yet."""
        request = pb.ResolveTransactionRequest(transaction=transaction)
        return await self._peer.result(
            lambda stub, left: stub.ResolveTransaction(request, wait_for_ready=True, timeout=left), _PATIENCE
        )

    def recover(self, fences: Sequence[pb.Fence]) -> AsyncIterator[pb.RecoveredBatch]:
        """Of these partitions: what publishers may send again, then entry batches, as the contract says.

        A store of a former release gives the first partition alone, and each batch in a message. Raises Fenced, if none
        of them holds, or Unavailable.
        """
        request = pb.RecoverRequest(partition=partition_in(fences[0].lease) or 0, fence=fences[0], fences=fences)
        return self._peer.stream(lambda stub: stub.Recover(request, wait_for_ready=True))

    async def backup(self) -> AsyncGenerator[pb.BackupPiece, None]:
        """Everything on disk at one moment; a stream that ends without an error is complete. Raises Unavailable."""
        async for piece in self._peer.stream(lambda stub: stub.Backup(pb.BackupRequest())):
            yield piece

    async def _watch(self, call: Callable[[StoreAsyncStub], AsyncIterable[T]]) -> AsyncIterator[T]:
        while True:
            try:
                async for message in self._peer.stream(call):
                    self._interrupted = False
                    yield message
            except BrokerError as failure:
                self._interrupt(failure)
            await asyncio.sleep(_RETRY_SECONDS)

    def _interrupt(self, failure: BrokerError) -> None:
        """A process has a dozen watches, which end together when the store ends: one line tells as much."""
        if not self._interrupted:
            log.info("watches of the store are interrupted, will reconnect", reason=failure.text)
        self._interrupted = True


async def _all(replies: AsyncIterable[pb.Records]) -> list[pb.Records]:
    return [message async for message in replies]
