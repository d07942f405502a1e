"""The broker as connections see it: routes, queue owners, consumers; what one gateway knows of other services."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.link_frame import Outcome
from services.common.clients.publisher import Publisher
from services.common.compiling import Compiling
from services.common.containment import for_each
from services.common.errors import BrokerError, NotFound, ResourceError, Unavailable
from services.common.memory import available
from services.common.message import columns
from services.common.message.weight import weight
from services.common.topology.slots import SlotId, slot_of
from services.gateway.owners.asking import AGAIN, PATIENCE, Asking
from services.gateway.owners.ownerless import OwnerlessQueues
from services.gateway.routing.bindings import Bindings
from services.gateway.routing.exclusive import ExclusiveQueues
from services.gateway.routing.routes import RouteCache
from services.gateway.sessions.backlog import Arrived
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.coordinator import Coordinator
from services.gateway.sessions.looking import Looking
from services.gateway.sessions.management import Management
from services.gateway.sessions.not_attached import why_not
from services.gateway.sessions.unwritable import Unwritable
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.common.clients.partition_table import PartitionTable
    from services.common.clients.queue_link import QueueLink
    from services.common.clients.store import StoreClient
    from services.common.clients.topology import TopologyClient
    from services.common.uid import UidSource
    from services.gateway.observe.observer import Observer
    from services.gateway.sessions.client import Client
    from services.gateway.sessions.session import Session
    from services.rpc import router_pb2

log = structlog.get_logger()


class Broker:
    """One for all connections of a gateway."""

    def __init__(
        self,
        name: str,
        uids: UidSource,
        store: StoreClient,
        topology: TopologyClient,
        table: PartitionTable,
        observer: Observer,
        bindings: Bindings | None = None,
    ) -> None:
        self.topology = topology
        self.observer = observer
        self._table = table
        self.bindings = bindings or Bindings()
        self.routes = RouteCache(topology, self.bindings)
        self.exclusive = ExclusiveQueues(topology)
        self.publisher = Publisher(name, uids, table, self._partition_of, self)
        self.unwritable = Unwritable(table, self.publisher, topology.queues)
        self.sessions: dict[Session, None] = {}
        self.compiling = Compiling()
        """Is held by whose selector is compiled; long ones are in turn."""
        self.looking = Looking()
        self._consumers: dict[int, Consumer] = {}
        self._windows = available() // 16
        self._handles = itertools.count(1)
        self._ownerless = OwnerlessQueues(
            self.publisher, topology.queues, self.sessions, self.new_handle, self.attach_to, self._end
        )
        self.asking = Asking(self._ownerless)
        self.transactions = Coordinator(self.publisher, store, self._ownerless)
        self._to_flush: dict[Client, None] = {}
        self.close_virtual_host: Callable[[str], None] = _no_connections
        """Ends the connections to a deleted virtual host; set by the listener, which knows them."""
        self.management: Management | None = None
        """Takes what is published to the management node of a virtual host; None where there is none."""
        topology.listeners.append(self)

    def _partition_of(self, queue_id: SlotId) -> int | None:
        definition = self.topology.queues.get(queue_id)
        return None if definition is None else definition.partition

    async def topology_known(self) -> None:
        """Returns when every topology change that was answered is known here, mostly at once; raises Unavailable."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + PATIENCE
        while not self.topology.has_place():
            if loop.time() > give_up:
                raise Unavailable("the router is away; try again")
            await asyncio.sleep(AGAIN)

    def settle(self, queue_id: SlotId, outcome: Outcome, uids: Sequence[int], change: Change = UNCHANGED) -> None:
        """Settles deliveries with the queue's owner, now or when the queue has one again."""
        self.observer.over(queue_id, outcome, uids)
        self._ownerless.settle(queue_id, outcome, uids, change)

    # -------------------------------------------------------------- consumers

    @property
    def window(self) -> int:
        """Bytes that may be on the way to the next consumer: fewer the more consumers there are, as none may read.

        The windows of n consumers together are no more than the logarithm of n times what is reserved for all.
        """
        return self._windows // (len(self._consumers) + 1)

    def new_handle(self) -> int:
        return next(self._handles)

    def add(self, consumer: Consumer) -> None:
        self._consumers[consumer.handle] = consumer

    def remove(self, consumer: Consumer) -> None:
        _is_over(consumer)
        self._consumers.pop(consumer.handle, None)
        self._ownerless.discard(consumer)

    async def attach(self, consumer: Consumer) -> None:
        """Attaches a new consumer; raises AccessRefused (exclusive use), LinkStolen, NotFound, Unavailable."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + PATIENCE
        while loop.time() < give_up and consumer.handle in self._consumers:
            link = self._ownerless.link_of(consumer.queue_id)
            if link:
                consumer.answer = loop.create_future()
                self.attach_to(consumer, link, [], again=False)
                attached = await consumer.answer
                if fault := why_not(consumer, attached):
                    raise fault
                if attached.reason == pb.NONE:
                    return
            elif consumer.queue_id not in self.topology.queues:
                raise NotFound("the queue was deleted")
            await asyncio.sleep(AGAIN)
        raise Unavailable("the queue has no owner at the moment; try again")

    def attach_to(self, consumer: Consumer, link: QueueLink, held: list[int], *, again: bool) -> None:
        """Asks an owner to serve it, under a new handle: frames for the former one are ignored from now on."""
        self._consumers.pop(consumer.handle, None)
        consumer.handle = self.new_handle()
        self._consumers[consumer.handle] = consumer
        consumer.attach(link, self.publisher.owner_of(consumer.queue_id)[1], held, again=again)

    async def detach(self, consumer: Consumer) -> None:
        """Ends a consumer; returns when nothing more can come for it."""
        if consumer.state is not ConsumerState.OWNERLESS and consumer.link and consumer.link.up:
            consumer.ended = asyncio.get_running_loop().create_future()
            consumer.link.detach(consumer.handle)
            await consumer.ended
        self.remove(consumer)

    def abandon(self, consumer: Consumer) -> None:
        """Ends a consumer whose session is gone. It stays known until the owner detaches it: deliveries go back."""
        if consumer.state is not ConsumerState.OWNERLESS and consumer.link and consumer.link.up:
            consumer.link.detach(consumer.handle)
            _is_over(consumer)
        else:
            self.remove(consumer)

    def end(self, consumer: Consumer) -> None:
        """Cancels a consumer and tells its client, which may still settle what it holds."""
        if consumer.state is not ConsumerState.ENDED and consumer.ended is None:
            consumer.session.end(consumer)
            self.abandon(consumer)
            consumer.session.connection.cancelled(consumer)

    # -------------------------------------------------------------- writing to clients

    def flush_soon(self, connection: Client) -> None:
        """Has a connection write when the frame at hand has been read, or at the end of the turn."""
        if not self._to_flush:
            asyncio.get_running_loop().call_soon(self._flush)
        self._to_flush[connection] = None

    def _flush(self) -> None:
        connections, self._to_flush = self._to_flush, {}
        for connection in connections:
            connection.flush()

    # -------------------------------------------------------------- the links say

    def received(self, link: QueueLink, frame: pb.QueueFrame, bodies: list[bytes]) -> None:
        if frame.attached:
            for_each("attaching a consumer", frame.attached, partial(self._attached, link))
        for activated in frame.activated:
            self._activated(link, activated)
        if frame.HasField("deliveries"):
            self._deliver(link, frame.deliveries, bodies)
        if frame.detached or frame.cancelled or frame.drained:
            self._ended(link, frame)
        if frame.prepared or frame.completed:
            self._answered(link, frame)
        if frame.unsettled:
            self.transactions.unsettled(link, frame.unsettled, self._consumers)
        if frame.lost_partitions:
            self.moved(link, self._table.ended(frame.lost_partitions, frame.lost_terms))
        # Last: a settlement that is safe is not lost with a partition of the same frame.
        self.transactions.safe(link, frame.safe)
        self._flush()

    def _ended(self, link: QueueLink, frame: pb.QueueFrame) -> None:
        for_each("draining a consumer", frame.drained, partial(self._drained, link))
        for_each("detaching a consumer", frame.detached, self._detached)
        for_each("cancelling a consumer", frame.cancelled, partial(self._cancelled, link))

    def _answered(self, link: QueueLink, frame: pb.QueueFrame) -> None:
        for_each("preparing a transaction", frame.prepared, partial(self.transactions.prepared, link))
        for_each("completing a transaction", frame.completed, partial(self.transactions.completed, link))

    def _deliver(self, link: QueueLink, batch: pb.DeliveryBatch, bodies: list[bytes]) -> None:
        uids, facts, properties = list(batch.uids), columns.facts_in(batch), columns.properties_in(batch)
        for traced in batch.traced:
            receiver = self._consumers.get(traced.consumer)
            if receiver and receiver.link is link:
                self.observer.arrived(traced, receiver.queue_id)
        at = 0
        for run in batch.runs:
            its = slice(at, at + run.count)
            at += run.count
            consumer = self._consumers.get(run.consumer)
            if consumer and consumer.link is link:
                size = weight(properties[its], bodies[its])
                attempts = run.attempts or run.redelivered  # what former releases say
                arrived = Arrived(attempts, uids[its], facts[its], properties[its], bodies[its], size, run.acquired)
                try:
                    consumer.session.deliver(consumer, arrived)
                except Exception as fault:  # noqa: BLE001 - this consumer's, and the others wait too
                    consumer.session.connection.fault("delivering a message", fault)

    def _attached(self, link: QueueLink, attached: pb.Attached) -> None:
        consumer = self._consumers.get(attached.consumer)
        if consumer and consumer.link is not link:
            return  # it has asked the next owner since
        self._ownerless.answered(attached.consumer, agreed=attached.reason == pb.NONE)
        if consumer is None:
            return
        if attached.reason == pb.NONE and consumer.state is not ConsumerState.ENDED:
            consumer.attached(attached)
            self._ownerless.used.add(consumer.queue_id)
        if consumer.answer and not consumer.answer.done():
            if attached.reason != pb.NONE:
                consumer.link = None  # `attach` asks again: what becomes of that link does not concern it
            consumer.answer.set_result(attached)
        elif attached.reason == pb.NONE:
            consumer.grant()
        elif attached.reason in (pb.UNKNOWN_QUEUE, pb.OTHER):
            self._end(consumer)
        else:
            self._lose_owner(consumer)

    def _activated(self, link: QueueLink, activated: pb.Activated) -> None:
        """Notes that a consumer is its queue's single active one: the queue's next owner is told."""
        consumer = self._consumers.get(activated.consumer)
        if consumer and consumer.link is link:
            consumer.activated = activated.number

    def _drained(self, link: QueueLink, drained: pb.Drained) -> None:
        consumer = self._consumers.get(drained.consumer)
        if consumer and consumer.link is link:
            (consumer.stopped if drained.stopped else consumer.drained)(drained.left)

    def _detached(self, handle: int) -> None:
        consumer = self._consumers.get(handle)
        if consumer is None:
            return
        if consumer.state is ConsumerState.ENDED:
            self.remove(consumer)
        elif consumer.ended and not consumer.ended.done():
            consumer.session.end(
                consumer
            )  # at once: who is next gets what it gives back, as soon as this frame is heard
            consumer.ended.set_result(None)

    def _cancelled(self, link: QueueLink, cancelled: pb.Cancelled) -> None:
        consumer = self._consumers.get(cancelled.consumer)
        if consumer is None:
            return
        if cancelled.reason == pb.NOT_OWNER:
            if consumer.link is link:
                self._lose_owner(consumer)
        else:
            fault = ResourceError(cancelled.text) if cancelled.reason == pb.LIMIT else None
            self._end(consumer, stolen=cancelled.reason == pb.STOLEN, fault=fault)

    def _end(self, consumer: Consumer, *, stolen: bool = False, fault: BrokerError | None = None) -> None:
        """The queue is gone, the consumer attached elsewhere, or at fault: ends it, and tells its client."""
        consumer.stolen = stolen
        if consumer.state is ConsumerState.ENDED:
            self.remove(consumer)
            return
        self.remove(consumer)
        if consumer.ended and not consumer.ended.done():
            consumer.ended.set_result(None)
            return
        if consumer.started:
            consumer.session.end(consumer)
            consumer.session.connection.cancelled(consumer, stolen=stolen, fault=fault)

    # -------------------------------------------------------------- owners change

    def link_up(self, link: QueueLink) -> None:
        self._ownerless.link_up(link)

    def link_down(self, link: QueueLink) -> None:
        self.transactions.link_down(link)
        self._owner_gone(link, lambda _: True)

    def moved(self, link: QueueLink, partitions: AbstractSet[int]) -> None:
        # The next owner waits to hear what is held. A consumer without acknowledgements holds nothing: it stays with
        # its former owner until that says that nothing more comes, or deliveries on their way here would be lost.
        self._owner_gone(link, lambda queue_id: self._partition_of(queue_id) in partitions, but_settled=True)

    def assignment_changed(self) -> None:
        self._ownerless.look_soon()

    def has_told(self, partition: int) -> bool:
        return self._ownerless.has_told(partition)

    def _owner_gone(self, link: QueueLink, is_lost: Callable[[SlotId], bool], *, but_settled: bool = False) -> None:
        lost = [each for each in self._consumers.values() if each.link is link and is_lost(each.queue_id)]
        concerned = [consumer for consumer in lost if not (but_settled and consumer.settled)]
        for_each("taking a consumer from its former owner", concerned, self._lose_owner)
        self._ownerless.link_down(link, is_lost)
        said = link.take_unsettled(is_lost) + self.transactions.take_unsettled(link, is_lost)
        self._ownerless.give_back(said, lost=not but_settled)

    def _lose_owner(self, consumer: Consumer) -> None:
        # What was kept unsent is dropped: the client never saw it, and the next owner delivers it again.
        if not consumer.settled:
            consumer.session.take_parked(consumer)
        consumer.link = None
        if consumer.state is ConsumerState.ENDED:
            self.remove(consumer)
            return
        if consumer.ended and not consumer.ended.done():
            self._ownerless.holds(consumer)
            consumer.ended.set_result(None)
            return
        if consumer.answer and not consumer.answer.done():
            consumer.answer.set_result(pb.Attached(reason=pb.NOT_OWNER))
            return
        consumer.state = ConsumerState.OWNERLESS
        self._ownerless.add(consumer)

    # -------------------------------------------------------------- the topology says

    def on_queue(self, definition: router_pb2.QueueDefinition) -> None:
        self.publisher.queue_came(slot_of(definition))

    def on_queue_changed(self, definition: router_pb2.QueueDefinition) -> None:
        """Its owner heeds what is said of it."""

    def on_queue_deleted(self, definition: router_pb2.QueueDefinition) -> None:
        self.publisher.forget_routes()
        self._ownerless.used.forget(definition)

    def on_forget(self, what: router_pb2.Forget) -> None:
        self.routes.forget(what)

    def on_reset(self) -> None:
        self.routes.forget_all()
        self.publisher.forget_routes()

    def on_virtual_host_deleted(self, name: str) -> None:
        self.close_virtual_host(name)

    def on_place(self) -> None:
        """Nothing to do: the route cache looks at the place whenever it is used."""


def _no_connections(_virtual_host: str) -> None:
    """`close_virtual_host` before there is a listener."""


def _is_over(consumer: Consumer) -> None:
    """Whichever way it ends: its queue, if that was for it alone, is not spared any more."""
    if consumer.state is ConsumerState.ENDED:
        return
    consumer.state = ConsumerState.ENDED
    connection = consumer.session.connection
    if consumer.queue_id in connection.spares:  # or each connection had a set of its own
        connection.spares -= {consumer.queue_id}
