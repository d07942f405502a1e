"""What only a queue's owner can do, purging it for one: asked on a stream as gateways have one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from services.common.clients.partition_table import PartitionTable
from services.common.clients.store import StoreClient
from services.common.errors import InternalError, NotFound, Unavailable
from services.common.topology.slots import SlotId
from services.mgmt.in_queues.stream import OwnerStream
from services.rpc import queue_pb2 as pb

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

    async def purge(self, queue_id: SlotId, partition: int, name: str) -> int:
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
                return await self._until_answered(partition, what, origin)
        except TimeoutError:
            raise Unavailable(f"queue '{name}' has no owner that answers; try again") from None

    async def _until_answered(self, partition: int, what: Mapping[str, Any], origin: int) -> pb.QueueReply:
        while True:
            if reply := await self._ask(partition, what, origin):
                return reply
            await asyncio.sleep(_AGAIN)

    async def _ask(self, partition: int, what: Mapping[str, Any], origin: int) -> pb.QueueReply | None:
        """None: not now."""
        owner = self._table.owners.get(partition)
        if owner is None:
            return None
        try:
            async with OwnerStream(owner, origin) as stream:
                reply = await stream.ask(**what)
        except Unavailable:
            return None
        return None if reply.reason in _NOT_NOW else reply
