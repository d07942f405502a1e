"""The gRPC face of the store: translates, and delegates."""
# ruff: noqa: ARG002, N802 - the contract names the methods and what they are given

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any, TypeVar

from grpc.aio import ServicerContext

from services.common.containment import contained
from services.common.errors import BrokerError, CommandInvalid, InternalError, ResourceError
from services.common.grpc_errors import abort
from services.common.streams.call import Call
from services.rpc import store_pb2 as pb
from services.rpc.store_pb2_grpc import StoreServicer
from services.store.audit import ChangeAudit
from services.store.backup.stream import backup
from services.store.engine import Engine
from services.store.journal import Stream
from services.store.origins import LAST_ORIGIN
from services.store.recovery import recover

T = TypeVar("T")
Context = ServicerContext[Any, Any]

_PATIENCE = 60.0  # seconds for whoever takes a backup to take the next piece


class Handler(StoreServicer):
    """One method for each RPC of proto/store.proto."""

    def __init__(self, engine: Engine, audit: ChangeAudit | None = None) -> None:
        self._engine = engine
        self._audit = audit

    async def AllocateOrigin(self, request: pb.AllocateOriginRequest, context: Context) -> pb.Origin:
        origin = await _answer(context, self._engine.origins.allocate())
        return pb.Origin(origin=origin, incarnation=self._engine.incarnation)

    async def KeepAlive(self, _requests: object, context: Context) -> None:  # type: ignore[override]
        while isinstance(request := await context.read(), pb.KeepAliveRequest):
            if request.incarnation:  # of no member: it says who writes
                self._engine.succeeded(request.member, request.incarnation)
                await context.write(pb.KeepAliveReply(incarnation=self._engine.incarnation))
            else:
                await context.write(await _answer(context, self._engine.keep_alive(request)))

    async def WatchLeases(self, request: pb.WatchLeasesRequest, context: Context) -> AsyncIterator[pb.LeaseTable]:
        async for table in self._engine.leases.watch(request.role):
            yield table

    async def PutRecords(self, request: pb.PutRecordsRequest, context: Context) -> pb.PutRecordsReply:
        changes = self._audit.changes(request) if self._audit else []
        version = await _answer(context, self._engine.records.put(request))
        if self._audit:
            self._audit.tell(changes)
        return pb.PutRecordsReply(version=version)

    async def ListRecords(self, request: pb.ListRecordsRequest, context: Context) -> AsyncIterator[pb.Records]:
        for records in self._engine.records.snapshot(request.kinds):
            yield records

    async def WatchRecords(self, request: pb.WatchRecordsRequest, context: Context) -> AsyncIterator[pb.Records]:
        async with aclosing(self._engine.records.watch(request.kinds)) as found:
            async for records in found:
                yield records

    async def Journal(self, _frames: object, context: Call) -> None:  # type: ignore[override]
        first = await context.read()
        if not isinstance(first, pb.JournalFrame):
            return
        if not 0 < first.origin <= LAST_ORIGIN:
            raise CommandInvalid("the first frame of a journal stream must carry its writer's origin")
        stream = Stream(self._engine.journal, first.origin, context.say, lambda held: context.hold(held=held))
        context.listen(stream.take, first)
        await context.read()  # the end of what it has to say
        await stream.answered()

    async def Recover(self, request: pb.RecoverRequest, context: Context) -> AsyncIterator[pb.RecoveredBatch]:
        try:
            async for batch in recover(self._engine.provider, self._engine.epochs, request):
                yield batch
        except BrokerError as error:
            await abort(context, error)

    async def CommitTransaction(self, request: pb.CommitTransactionRequest, context: Context) -> pb.TransactionOutcome:
        return await self._engine.transactions.commit(request.transaction, request.parts)

    async def ResolveTransaction(
        self, request: pb.ResolveTransactionRequest, context: Context
    ) -> pb.TransactionOutcome:
        return await self._engine.transactions.resolve(request.transaction)

    async def Backup(self, request: pb.BackupRequest, context: Context) -> None:  # type: ignore[override]
        try:
            async with aclosing(backup(self._engine.provider, self._engine.records)) as pieces:
                async for piece in pieces:
                    async with asyncio.timeout(_PATIENCE):
                        await context.write(piece)
        except TimeoutError:
            # What is read for it is held: the log of a store that writes grows meanwhile.
            await abort(context, ResourceError(f"a backup that took nothing for {_PATIENCE:.0f} seconds was ended"))
        except BrokerError as error:
            await abort(context, error)
        except Exception as fault:  # noqa: BLE001 - whoever waits for it hears why
            contained("reading for a backup", fault)
            await abort(context, InternalError(f"the store cannot be read: {fault}"))


async def _answer(context: Context, answer: Awaitable[T]) -> T:
    try:
        return await answer
    except BrokerError as error:
        await abort(context, error)
