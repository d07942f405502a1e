"""Counts of queues: asked of all queue processes at once, in the background while there are requests for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from services.common.clients.calls import stream
from services.common.clients.partition_table import PartitionTable
from services.common.clock import monotonic
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.grpc_channel import connect
from services.common.runtime import Tasks
from services.mgmt.tree.recent import Recent
from services.rpc import counts_pb2 as pb
from services.rpc.counts_pb2_grpc import CountsStub

if TYPE_CHECKING:
    from services.rpc.counts_pb2_grpc import CountsAsyncStub

_EVERY: Final = 2.0  # seconds
_WANTED: Final = 30.0  # after the last request no process is asked any more
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


class Collector(Recent):
    """`last` is what was told last."""

    def __init__(self, table: PartitionTable) -> None:
        super().__init__()
        self.last = Counts()
        self._table = table
        self._asked = 0.0
        self._tasks = Tasks()
        self._running: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Stops asking."""
        await self._tasks.stop()

    async def fresh(self) -> Counts:
        """Counts that are at most five seconds old. A queue process that does not answer in time is left out."""
        self._asked = monotonic()
        if self._running is None or self._running.done():
            self._running = self._tasks.start(self._keep(), "counts of queues")
        await self.recent()
        return self.last

    async def _keep(self) -> None:
        while monotonic() - self._asked < _WANTED:
            await self.younger_than(_EVERY)
            await asyncio.sleep(_EVERY)

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
