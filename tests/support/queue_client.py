"""A gateway without sockets: publishes with confirms, consumes with acknowledgements, follows queues to owners."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.common.clients.outbound import Refused
from services.common.clients.partition_table import ROLE, PartitionTable
from services.common.clients.publisher import Publisher
from services.common.clients.store import StoreClient
from services.common.uid import UidSource
from services.gateway.owners.holdings_report import HoldingsReport
from services.gateway.owners.used_queues import UsedQueues
from services.rpc import queue_pb2 as pb
from tests.support.messages import messages

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from tests.support.queue_house import House

CREDIT = 50
RETRY_SECONDS = 0.03


@dataclass(eq=False)
class Consumer:
    """`received` are all bodies in the order in which they came."""

    handle: int
    queue_id: int
    received: list[bytes] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    link: QueueLink | None = None
    attached: bool = False


@dataclass
class Confirmed:
    """Messages for one queue; count when they are safe."""

    client: Client
    bodies: list[bytes]
    confirmed: list[bytes]

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        assert not refusals
        assert len(numbers) == len(self.bodies)
        self.confirmed += self.bodies
        self.client.under_way -= 1


class Client:
    """Settles what it gets a moment later, in one go for each queue."""

    def __init__(self, house: House, name: str) -> None:
        self._house = house
        self._name = name
        self._store = StoreClient(house.settings.address_of("store"))
        self._handles = itertools.count(1)
        self._consumers: dict[int, Consumer] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.under_way = 0

    async def start(self) -> None:
        origin, _ = await self._store.allocate_origin(self._name)
        table = PartitionTable()
        self.publisher = Publisher(
            self._name,
            UidSource(origin),
            table,
            self._partition_of,
            self,
        )
        self._report = HoldingsReport(self.publisher, UsedQueues({}))
        for work in (table.follow(self._store.watch_leases(ROLE)), self._attach_for_ever(), self._settle_for_ever()):
            self._tasks.append(asyncio.create_task(work))
        self.publisher.start()

    def _partition_of(self, queue_id: int) -> int | None:
        queues = self._house.topology.queues
        return queues[queue_id].partition if queue_id in queues else None

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.publisher.stop()
        await self._store.close()

    def publish(self, queue_id: int, bodies: list[bytes], confirmed: list[bytes], *, persistent: bool) -> None:
        self.under_way += 1
        first = self.publisher.uids.take(len(bodies))[0]
        its = messages(bodies, (queue_id,), first, persistent=persistent)
        self.publisher.publish(its, Confirmed(self, bodies, confirmed))

    def consume(self, queue_id: int) -> Consumer:
        consumer = Consumer(next(self._handles), queue_id)
        self._consumers[consumer.handle] = consumer
        return consumer

    async def _attach_for_ever(self) -> None:
        while True:
            for consumer in self._consumers.values():
                link = self.publisher.link_of(consumer.queue_id)
                if consumer.link is None and link:
                    consumer.link = link
                    link.attach(
                        pb.AttachConsumer(
                            consumer=consumer.handle,
                            queue_id=consumer.queue_id,
                            messages=CREDIT - len(consumer.held),
                            bytes=1 << 40,
                            held=consumer.held,
                            again=True,
                        )
                    )
            # Those of former owners that still talk hold nothing up but their own.
            self._report.tell({self._partition_of(each.queue_id) for each in self._consumers.values() if not each.link})
            await asyncio.sleep(RETRY_SECONDS)

    async def _settle_for_ever(self) -> None:
        for turn in itertools.count():
            await asyncio.sleep(0.004)
            for consumer in self._consumers.values():
                if consumer.attached and consumer.link and turn % 3 == consumer.handle % 3:
                    consumer.link.settle(consumer.queue_id, pb.ACCEPT, consumer.held)
                    consumer.link.credit(consumer.handle, len(consumer.held), 0)
                    consumer.held = []

    # -------------------------------------------------------------- the links say

    def received(self, link: QueueLink, frame: pb.QueueFrame, bodies: list[bytes]) -> None:
        for attached in frame.attached:
            consumer = self._consumers[attached.consumer]
            if consumer.link is link:
                consumer.attached = attached.reason == pb.NONE
                consumer.link = link if consumer.attached else None
        self._deliver(frame.deliveries, bodies)
        for cancelled in frame.cancelled:
            consumer = self._consumers[cancelled.consumer]
            if consumer.link is link:
                consumer.link, consumer.attached = None, False

    def _deliver(self, batch: pb.DeliveryBatch, bodies: list[bytes]) -> None:
        at = 0
        for run in batch.runs:
            consumer = self._consumers[run.consumer]
            consumer.received += bodies[at : at + run.count]
            consumer.held += batch.uids[at : at + run.count]
            at += run.count

    def has_told(self, partition: int) -> bool:
        return self._report.has(partition)

    def link_up(self, link: QueueLink) -> None:
        """Consumers are attached by the clock."""
        self._report.forget_link(link)

    def link_down(self, link: QueueLink) -> None:
        for consumer in self._consumers.values():
            if consumer.link is link:
                consumer.link, consumer.attached = None, False

    def moved(self, link: QueueLink, partitions: AbstractSet[int]) -> None:
        """Consumers hear it from the former owner."""

    def assignment_changed(self) -> None:
        """As above."""
