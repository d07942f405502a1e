"""Where partitions are and where they should be, for operators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from services.common.clients.calls import Client, result
from services.common.clients.members import named
from services.common.clients.overtaken import decided_again
from services.common.clients.partition_table import ROLE, Owner, PartitionTable
from services.common.clients.store import StoreClient
from services.common.errors import Unavailable
from services.common.grpc_channel import connect
from services.common.placement import RECORD_KIND, pin_key, pin_record, read_pin
from services.rpc import router_pb2
from services.rpc.router_pb2_grpc import RouterStub

_DEADLINE = 5.0  # seconds for an answer


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition: its owner now, and the living member that it is pinned to."""

    partition: int
    owner: Owner | None
    pinned: str | None


class PlacementClient(Client):
    """Connections to store and router; calls raise Unavailable when the service does not answer."""

    def __init__(self, store_address: str, router_address: str) -> None:
        self._store = StoreClient(store_address)
        self._router = connect(router_address)

    async def close(self) -> None:
        """Ends the connections."""
        await self._router.close()
        await self._store.close()

    async def all(self, partitions: int) -> list[Placed]:
        """Partitions 0 to `partitions` - 1."""
        async with _answered():
            table, pins = await self._table(), await self._pins()
        return [
            Placed(number, table.owners.get(number), pin if (pin := pins.get(number)) in table.members else None)
            for number in range(partitions)
        ]

    async def queues(self) -> Counter[int]:
        """How many queues each partition has, of all virtual hosts."""
        reply = await result(RouterStub(self._router).Describe(router_pb2.DescribeRequest(), timeout=_DEADLINE))
        return Counter(queue.partition for queue in reply.queues)

    async def move(self, partitions: Collection[int], to: str) -> str:
        """Pins partitions to the member that `to` names, in one of the ways of members.py; gives the member.

        Owners hand over when they see the pins. Raises NotFound, or PreconditionFailed when `to` fits several members.
        """
        async with _answered():
            table = await self._table()
            member = await named(to, table.members)
            await self._pin(partitions, member, table)
        return member

    @decided_again
    async def _pin(self, partitions: Collection[int], member: str, table: PartitionTable) -> None:
        read = await self._store.read_records(RECORD_KIND)
        dead = [number for number, pin in map(read_pin, read.records) if pin not in table.members]
        puts = [pin_record(number, member) for number in partitions]
        deletes = [pin_key(number) for number in dead if number not in partitions]
        await self._store.put_records(puts, deletes, unchanged=read.unchanged)

    async def unpin(self, partitions: Collection[int]) -> None:
        """Removes their pins: they are shared out as all others are."""
        async with _answered():
            await self._store.put_records(deletes=[pin_key(number) for number in partitions])

    async def moved(self, partitions: Collection[int], member: str) -> None:
        """Returns when `member` owns all of them."""
        async with aclosing(self._tables()) as tables:
            async for table in tables:
                owners = (table.owners.get(number) for number in partitions)
                if all(owner and owner.member == member for owner in owners):
                    return

    async def _table(self) -> PartitionTable:
        async with aclosing(self._tables()) as tables:
            return await anext(tables)

    async def _tables(self) -> AsyncGenerator[PartitionTable, None]:
        table = PartitionTable()
        async for message in self._store.watch_leases(ROLE):
            table.apply(message)
            yield table

    async def _pins(self) -> dict[int, str]:
        return dict(read_pin(record) for record in await self._store.list_records([RECORD_KIND]))


@asynccontextmanager
async def _answered() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_DEADLINE):
            yield
    except TimeoutError:
        raise Unavailable("the store does not answer") from None
