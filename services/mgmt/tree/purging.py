"""What only a queue's owner can do, purging it for one: asked on a stream as gateways have one."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc.aio

from services.common.clients.calls import unless_given_up
from services.common.clients.partition_table import Owner, PartitionTable
from services.common.clients.store import StoreClient
from services.common.errors import BrokerError, InternalError, NotFound, Unavailable
from services.common.grpc_channel import connect
from services.common.grpc_errors import from_rpc
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub

_DEADLINE: Final = 30.0  # seconds
_AGAIN: Final = 0.1
_NOT_NOW: Final = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})


class Purging:
    """`table` names the owners of partitions."""

    def __init__(self, store: StoreClient, table: PartitionTable) -> None:
        self._store = store
        self._table = table

    def owner_of(self, partition: int) -> str:
        """The member that owns it; empty where there is none."""
        owner = self._table.owners.get(partition)
        return owner.member if owner else ""

    async def purge(self, queue_id: int, partition: int, name: str) -> int:
        """How many messages went. Raises NotFound, and Unavailable where the queue has no owner for long."""
        reply = await self.ask(partition, name, purge=pb.PurgeRequest(queue_id=queue_id))
        if reply.reason == pb.UNKNOWN_QUEUE:
            raise NotFound(f"no queue '{name}'")
        if reply.reason != pb.NONE:
            raise InternalError(reply.text or f"queue '{name}' is not purged")
        return int(reply.message_count)

    async def ask(self, partition: int, name: str, **what: Any) -> pb.QueueReply:  # noqa: ANN401 - one field of the oneof
        """What the owner of the queue answers. Raises Unavailable where there is none for long."""
        origin, _ = await self._store.allocate_origin("mgmt")
        try:
            async with asyncio.timeout(_DEADLINE):
                return await self._until_answered(partition, pb.QueueRequest(id=1, **what), origin)
        except TimeoutError:
            raise Unavailable(f"queue '{name}' has no owner that answers; try again") from None

    async def _until_answered(self, partition: int, request: pb.QueueRequest, origin: int) -> pb.QueueReply:
        while True:
            if reply := await self._ask(partition, request, origin):
                return reply
            await asyncio.sleep(_AGAIN)

    async def _ask(self, partition: int, request: pb.QueueRequest, origin: int) -> pb.QueueReply | None:
        """None: not now."""
        owner = self._table.owners.get(partition)
        try:
            reply = await _answered(owner, request, origin) if owner else None
        except Unavailable:
            return None
        return None if reply is None or reply.reason in _NOT_NOW else reply


async def _answered(owner: Owner, request: pb.QueueRequest, origin: int) -> pb.QueueReply:
    channel = connect(owner.address)
    hello = pb.Hello(origin=origin, name="mgmt", member=owner.member, number=1)
    request.term = owner.epoch
    try:
        with unless_given_up():
            call = QueueStub(channel).Attach(timeout=_DEADLINE)
            await call.write(pb.LinkFrame(hello=hello, requests=[request]))
            async for frame in call:
                for reply in frame.replies:
                    return reply
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None
    finally:
        await channel.close()
    raise _ended()


def _ended() -> BrokerError:
    return Unavailable("its owner ends")
