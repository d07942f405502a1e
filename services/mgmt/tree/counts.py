"""Counts of queues: asked of all queue processes at once, in the background while there are requests for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from services.common.clients.calls import stream
from services.common.clients.partition_table import PartitionTable
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.grpc_channel import connect
from services.mgmt.tree.recent import Followed
from services.rpc import counts_pb2 as pb
from services.rpc.counts_pb2_grpc import CountsStub

if TYPE_CHECKING:
    from services.rpc.counts_pb2_grpc import CountsAsyncStub

_DEADLINE: Final = 2.5

log = structlog.get_logger()


class Row(NamedTuple):
    """Of one queue."""

    ready: int
    unsettled: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Counts:
    """As they were at about one moment, by the queue's id, which is that of its one slot."""

    rows: dict[int, Row] = field(default_factory=dict)
    consumers: dict[int, list[pb.Consumer]] = field(default_factory=lambda: defaultdict(list))

    def take(self, said: pb.Counted) -> None:
        """A portion."""
        self.rows.update(zip(said.queue_ids, map(Row, said.ready, said.unsettled, said.bytes), strict=True))
        for consumer in said.consumers:
            self.consumers[consumer.queue_id].append(consumer)


class Collector(Followed):
    """`last` is what was told last. A queue process that does not answer in time is left out."""

    def __init__(self, table: PartitionTable) -> None:
        super().__init__("counts of queues")
        self.last = Counts()
        self._table = table

    async def fresh(self) -> Counts:
        """Counts that are at most five seconds old."""
        await self.followed()
        return self.last

    async def _ask(self) -> None:
        counts = Counts()
        await asyncio.gather(*(self._of(address, counts) for address in set(self._table.members.values())))
        self.last = counts

    async def _of(self, address: str, counts: Counts) -> None:
        channel = connect(address)
        stub: CountsAsyncStub = CountsStub(channel)
        try:
            async for said in stream(stub.Count(pb.CountRequest(), timeout=_DEADLINE)):
                counts.take(said)
        except BrokerError as failure:
            log.info("a queue process does not say its counts", address=address, reason=failure.text)
        except Exception as fault:  # noqa: BLE001 - the others have said theirs
            contained("counting queues", fault, address=address)
        finally:
            await channel.close()
