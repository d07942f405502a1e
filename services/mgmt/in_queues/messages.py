"""Messages of queues, chosen by their ids or a selector: shown, dropped, moved and copied.

All of these go by portions, of a thousand messages or four mebibytes. Each portion that is moved or copied is a
transaction: none of it is lost or doubled, whoever dies. What is wrong with a later one leaves those before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from services.common.clients.partition_table import Owner, PartitionTable
from services.common.clients.store import StoreClient
from services.common.clock import epoch_ms
from services.common.errors import BrokerError, InternalError, NotFound, PreconditionFailed, ResourceError, Unavailable
from services.common.message import columns
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.common.uid import UidSource
from services.mgmt.in_queues.deciding import Part, commit
from services.mgmt.in_queues.stream import OwnerStream
from services.rpc import queue_pb2 as pb

_PATIENCE: Final = 30.0
_AGAIN: Final = 0.1
_NOT_NOW: Final = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})


class Place(NamedTuple):
    """A queue."""

    queue_id: SlotId
    partition: int
    name: str


@dataclass(frozen=True, slots=True)
class Selection:
    """`uids` None: any; `most` None: any number; `first` are passed over."""

    uids: Sequence[int] | None = None
    selector: str = ""
    most: int | None = None
    first: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be meant."""
        return self.most == 0 or (self.uids is not None and not self.uids)

    def asked(self, place: Place, purpose: pb.SelectRequest.Purpose.ValueType, *, bodies: bool) -> pb.SelectRequest:
        """Of a queue process."""
        return pb.SelectRequest(
            queue_id=place.queue_id, uids=self.uids or (), selector=self.selector, first=self.first,
            most=self.most or 0, purpose=purpose, bodies=bodies,
        )  # fmt: skip


_Carry = Callable[[pb.QueueReply], Coroutine[Any, Any, None]]


class QueueMessages:
    """`table` names the owners of partitions."""

    def __init__(self, store: StoreClient, table: PartitionTable) -> None:
        self._store = store
        self._table = table

    async def look(self, place: Place, selection: Selection, *, bodies: bool = False) -> list[pb.QueueReply]:
        """All portions. Raises NotFound, and Unavailable where the queue has no owner for long."""
        return await self._all(place, selection, pb.SelectRequest.LOOK, bodies=bodies)

    async def drop(self, place: Place, selection: Selection) -> list[int]:
        """Drops those that wait; gives their uids."""
        return _uids(await self._all(place, selection, pb.SelectRequest.DROP))

    async def _all(
        self,
        place: Place,
        selection: Selection,
        purpose: pb.SelectRequest.Purpose.ValueType,
        *,
        bodies: bool = False,
    ) -> list[pb.QueueReply]:
        if selection.is_empty:
            return []
        async with AsyncExitStack() as stack:
            stream = await self._open(stack, place)
            asked = selection.asked(place, purpose, bodies=bodies)
            return [reply async for reply in _portions(stream, place, asked)]

    async def move(self, source: Place, target: Place, selection: Selection) -> list[int]:
        """Those that wait are in the other queue instead, each as another message; gives the uids that they had."""
        return await self._carry(source, target, selection, pb.SelectRequest.TAKE)

    async def copy(self, source: Place, target: Place, selection: Selection) -> list[int]:
        """The same, and they stay; those that consumers hold as well."""
        return await self._carry(source, target, selection, pb.SelectRequest.LOOK)

    async def _carry(
        self, source: Place, target: Place, selection: Selection, purpose: pb.SelectRequest.Purpose.ValueType
    ) -> list[int]:
        if selection.is_empty:
            return []
        done: list[int] = []
        async with AsyncExitStack() as stack:
            taking = await self._open(stack, source)
            there = self._owner_of(target) == taking.owner
            giving = taking if there else await self._open(stack, target)
            carrying = _Carrying(self._store, taking, giving, source, target, await self._uids())
            moves = purpose == pb.SelectRequest.TAKE
            try:
                async for reply in _portions(taking, source, selection.asked(source, purpose, bodies=True)):
                    await carrying.portion(reply, moves=moves)
                    done += reply.message.uids
            except BrokerError as error:
                raise _after(len(done), error) from None
        return done

    # -------------------------------------------------------------- owners

    async def _uids(self) -> UidSource:
        origin, _ = await self._store.allocate_origin("mgmt")
        return UidSource(origin)

    def _owner_of(self, place: Place) -> Owner | None:
        return self._table.owners.get(place.partition)

    async def _open(self, stack: AsyncExitStack, place: Place) -> OwnerStream:
        """To the queue's owner, once it answers."""
        source = await self._uids()
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    if opened := await self._try(stack, place, source.origin):
                        return opened
                    await asyncio.sleep(_AGAIN)
        except TimeoutError:
            raise Unavailable(f"queue '{place.name}' has no owner that answers; try again") from None

    async def _try(self, stack: AsyncExitStack, place: Place, origin: int) -> OwnerStream | None:
        if (owner := self._owner_of(place)) is None:
            return None
        async with AsyncExitStack() as trying:
            try:
                stream = await trying.enter_async_context(OwnerStream(owner, origin))
                reply = await stream.ask(inspect=pb.InspectRequest(queue_id=place.queue_id))
            except Unavailable:
                return None
            if reply.reason in _NOT_NOW:
                return None
            _check(reply, place)
            stack.push_async_exit(trying.pop_all())
            return stream


async def _portions(stream: OwnerStream, place: Place, asked: pb.SelectRequest) -> AsyncIterator[pb.QueueReply]:
    reply = await stream.ask(select=asked)
    number = reply.id
    while True:
        _check(reply, place)
        yield reply
        if not reply.more:
            return
        reply = await stream.ask(more=pb.MoreRequest(queue_id=place.queue_id, number=number))


@dataclass
class _Carrying:
    """From one queue into another."""

    store: StoreClient
    taking: OwnerStream
    giving: OwnerStream
    source: Place
    target: Place
    uids: UidSource

    async def portion(self, reply: pb.QueueReply, *, moves: bool) -> None:
        """All of it, or none. Raises BrokerError."""
        if not reply.message.uids:
            return
        if self.giving.has_no_room:
            raise ResourceError(f"the process of queue '{self.target.name}' has no room, and holds publishers back")
        if self.giving.is_full(self.target.queue_id):
            raise PreconditionFailed(f"queue '{self.target.name}' is full")
        transaction = self.uids.take()[0]
        successors = self.uids.take(len(reply.message.uids))
        batch = self._batch(reply, transaction, successors)
        of_source = (self._moved if moves else self._copied)(reply, transaction, successors.start)
        if self.taking is self.giving:
            parts = {self.giving: of_source._replace(batch=batch)}
        else:
            parts = {self.giving: Part(batch), self.taking: of_source}
        await commit(self.store, transaction, parts)

    def _moved(self, reply: pb.QueueReply, transaction: int, successors: int) -> Part:
        settle = pb.Settle(
            queue_id=self.source.queue_id, outcome=pb.ACCEPT, uids=reply.message.uids, transaction=transaction,
            successors=successors, moved_to=self.target.queue_id,
        )  # fmt: skip
        return Part(settle=settle)

    def _copied(self, reply: pb.QueueReply, _transaction: int, successors: int) -> Part:
        source, target = self.source.queue_id, self.target.queue_id
        return Part(copied=pb.Copied(queue_id=source, uids=reply.message.uids, successors=successors, copied_to=target))

    def _batch(self, reply: pb.QueueReply, transaction: int, successors: range) -> pb.PublishBatch:
        """As they are, but for their uids, and for what has passed of their own times to live: they arrive now."""
        told, now = reply.message, epoch_ms()
        batch = pb.PublishBatch(
            uids=successors, bodies=told.bodies, transaction=transaction, time_ms=now, resent=range(len(successors)),
            queues=[pb.QueueMessages(queue_id=self.target.queue_id, count=len(successors))],
        )  # fmt: skip
        came = (each.time_ms for each in reply.shown)
        facts = [left(each, time_ms, now) for each, time_ms in zip(columns.facts_in(told), came, strict=True)]
        columns.put(batch, facts, columns.properties_in(told))
        return batch


def left(facts: Facts, came_ms: int, now: int) -> Facts:
    """With what is left of a message's own time to live, where it says one and it is known when it came (else 0)."""
    if facts.ttl_ms is None or not came_ms:
        return facts
    return facts._replace(ttl_ms=max(came_ms + facts.ttl_ms - now, 0))


def _check(reply: pb.QueueReply, place: Place) -> None:
    if reply.reason == pb.UNKNOWN_QUEUE:
        raise NotFound(f"no queue '{place.name}'")
    if reply.reason in _NOT_NOW:
        raise Unavailable(f"queue '{place.name}' has another owner by now; try again")
    if reply.reason != pb.NONE:
        raise InternalError(reply.text or f"messages of queue '{place.name}' cannot be told")


def _uids(replies: Sequence[pb.QueueReply]) -> list[int]:
    return list(chain.from_iterable(reply.message.uids for reply in replies))


def _after(count: int, error: BrokerError) -> BrokerError:
    """Says what was done before."""
    return type(error)(f"{error.text}; {count} messages had gone before") if count else error
