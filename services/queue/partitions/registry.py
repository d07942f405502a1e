"""Which queues this process serves: those of the topology whose partitions it owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import call

from services.common import plugins
from services.common.arguments import policies
from services.common.clock import Epoch
from services.common.containment import contained
from services.common.ledger import stages
from services.common.message import arguments
from services.common.topology.slots import SlotId, slot_of
from services.queue.machine.message import NOBODYS
from services.queue.machine.options import QueueOptions, read_options
from services.queue.machine.queue import Queue
from services.queue.partitions.deletions import Deletions
from services.queue.partitions.partition import Awaited, Partition, PartitionState
from services.queue.partitions.unheard_queues import UnheardQueues
from services.rpc import queue_pb2 as pb
from services.rpc.router_pb2 import QueueDefinition

_REMEMBERED = 1000
_DO = "delete the queue, or start a version of Hopline that can serve it; what it has on disk is kept until then"


class Registry:
    """`queues` are those that can be used now, by id; `definitions` is the topology's own table.

    `has_place`: whether that table is known to be complete.
    """

    def __init__(self, definitions: Mapping[SlotId, QueueDefinition], has_place: Callable[[], bool]) -> None:
        self.now = Epoch()
        """The clock for everything that expires: messages, queues, what is waited for."""
        self.definitions = definitions
        self.partitions: dict[int, Partition] = {}
        self.queues: dict[SlotId, Queue] = {}
        self.when_certain: Callable[[Callable[[], None]], object] = call
        """Calls back once it is known which leases are held: until then another owner may be the one to decide."""
        self.deleting = Deletions(self._replay)
        self.unheard = UnheardQueues(has_place, self._replay)
        self._sealed: dict[SlotId, Awaited] = {}  # queues to be deleted if empty: nothing comes in meanwhile
        self.unusable: set[SlotId] = set()  # queues that cannot be served as declared; their entries are kept
        self.departed: dict[SlotId, QueueDefinition] = {}
        """The queues deleted last: messages on their way to them are on record under their names."""

    def partition_of(self, queue_id: SlotId) -> Partition | None:
        """The queue's partition when this process holds it, in any state."""
        definition = self.definitions.get(queue_id)
        return self.partitions.get(definition.partition) if definition else None

    def serving(self, queue_id: SlotId, term: int) -> Queue | None:
        """The queue, when its partition here is in this term; term 0 stands for any."""
        queue = self.queues.get(queue_id)
        return queue if queue is None or self.is_in(queue, term) else None

    def is_in(self, queue: Queue, term: int) -> bool:
        """Whether `term` is that of the queue's partition here, or 0."""
        return not term or self.partitions[queue.options.partition].epoch == term

    def awaited(self, queue_id: SlotId) -> Awaited | None:
        """What to wait for before a request for the queue can be answered."""
        if sealed := self._sealed.get(queue_id):
            return sealed
        if queue_id not in self.definitions:
            return self.unheard.awaited(queue_id)
        partition = self.partition_of(queue_id)
        return partition if partition and partition.waits else None

    def settling(self, queue_id: SlotId) -> Queue | None:
        """The queue, also when it is sealed, or is leaving and not yet written down for the next owner."""
        queue = self.queues.get(queue_id)
        if queue is None and (partition := self.partition_of(queue_id)):
            settles = PartitionState.SERVING if queue_id in self._sealed else PartitionState.LEAVING
            queue = partition.queues.get(queue_id) if partition.state is settles else None
        return queue

    def seal(self, queue: Queue) -> None:
        """The queue is empty, and is to be deleted only if it is: requests for it wait until that is decided."""
        options = queue.options
        self._sealed[options.queue_id] = Awaited()
        self.queues.pop(options.queue_id, None)

    def unseal(self, queue_id: SlotId) -> None:
        """The queue was deleted, or stays: carries out, or refuses, what has waited for it."""
        if sealed := self._sealed.pop(queue_id, None):
            partition = self.partition_of(queue_id)
            if partition and partition.state is PartitionState.SERVING and (queue := partition.queues.get(queue_id)):
                self.queues[queue_id] = queue
            self._replay(sealed)

    def missing(self, queue_id: SlotId) -> pb.Reason.ValueType:
        """Why a queue is not in `queues`, when there is nothing to wait for."""
        if queue_id in self.unusable:
            return pb.OTHER
        return pb.NOT_OWNER if queue_id in self.definitions else pb.UNKNOWN_QUEUE

    def options(self, definition: QueueDefinition) -> QueueOptions:
        """The options that a definition gives the queue."""
        return read_options(
            slot_of(definition),
            definition.virtual_host,
            definition.name,
            definition.partition,
            arguments.load(definition.arguments),
            policies.loaded(definition.policy),
            durable=definition.durable,
            auto_delete=definition.auto_delete,
            unused=definition.unused,
            kept=definition.kept,
        )

    def create(self, definition: QueueDefinition, partition: Partition, *, in_parts: bool = False) -> Queue:
        """A queue of its type in a partition that is held, with what it had; `in_parts`: the rest by `put_back`."""
        queue_id = slot_of(definition)
        options = self.options(definition)
        kind = options.type or definition.type or "classic"
        policy = plugins.load("overflow_policies", options.overflow)()
        queue = Queue(plugins.load("queue_types", kind), options, partition.context, policy, self.now())
        try:
            if notes := partition.notes.pop(queue_id, None):
                queue.features.recall(notes, partition.orphans.get(queue_id, []))
            self._put_back(queue, partition, in_parts=in_parts)
        except Exception:
            queue.give_up()  # nobody has taken its messages from the others
            raise
        partition.queues[queue_id] = queue
        if options.unused.is_made and (partition.state is not PartitionState.SERVING or not options.kept):
            queue.use.out_of_sight(self.now())
            partition.context.expect(queue_id)
        if partition.state is PartitionState.SERVING:
            self.queues[queue_id] = queue
        return queue

    def _put_back(self, queue: Queue, partition: Partition, *, in_parts: bool) -> None:
        queue_id, orphans = queue.options.queue_id, partition.orphans.get(queue.options.queue_id, [])
        most = queue.features.portion(orphans) if in_parts else None
        if some := orphans[:most]:
            queue.recover(some, self.now())
        del orphans[:most]
        if not orphans:
            partition.orphans.pop(queue_id, None)

    def put_back(self, definition: QueueDefinition, partition: Partition) -> bool:
        """Gives a queue that was opened in parts more of what it had, as goes in one turn; whether there is more."""
        queue_id = slot_of(definition)
        if (queue := partition.queues.get(queue_id)) is None:
            return False
        try:
            self._put_back(queue, partition, in_parts=True)
        except Exception as fault:  # noqa: BLE001 - as of `open`
            self._take_back(partition.queues.pop(queue_id), partition)
            partition.left_out.add(queue_id)
            self._leave_out(definition, fault)
            return False
        return queue_id in partition.orphans

    def _take_back(self, queue: Queue, partition: Partition) -> None:
        """What it was given is nobody's again: it goes when the queue is deleted, or the partition leaves."""
        left = partition.orphans.setdefault(queue.options.queue_id, [])
        both = set(left)  # of the part at which it failed
        left[:0] = [entry for entry in queue.give_up() if entry not in both]

    def open(self, definition: QueueDefinition, partition: Partition, *, in_parts: bool = False) -> None:
        """As `create`; a queue that cannot be served is named in the log, and left out."""
        try:
            self.create(definition, partition, in_parts=in_parts)
        except Exception as fault:  # noqa: BLE001 - one queue's fault must not keep the others from being served
            self._leave_out(definition, fault)

    def _leave_out(self, definition: QueueDefinition, fault: Exception) -> None:
        self.unusable.add(slot_of(definition))
        contained("opening a queue", fault, do=_DO, queue=definition.name, virtual_host=definition.virtual_host)

    def change(self, definition: QueueDefinition) -> None:
        """Its policies say something else: the queue heeds that from now on, its next owner from when it begins."""
        partition = self.partitions.get(definition.partition)
        if partition and (queue := partition.queues.get(slot_of(definition))):
            options = self.options(definition)
            queue.adopt(options, plugins.load("overflow_policies", options.overflow)(), self.now())

    def serve(self, partition: Partition) -> None:
        """The partition has been read back."""
        for queue_id, definition in list(self.definitions.items()):
            its = definition.partition == partition.number and queue_id not in partition.left_out
            if its and queue_id not in partition.queues:
                self.open(definition, partition)
        partition.state = PartitionState.SERVING
        self.queues.update(partition.queues)

    def suspend(self, partition: Partition) -> None:
        """The partition is about to be handed over: nothing comes in, nothing goes out any more."""
        partition.state = PartitionState.LEAVING
        self._withdraw(partition)
        for queue_id, queue in partition.queues.items():
            partition.recalled |= {(consumer.link, queue_id) for consumer in queue.consumers if not consumer.settled}
            _end(queue, pb.NOT_OWNER)
        self._unseal_all(partition)

    def not_recalled(self, link: object) -> None:
        """The link is gone: none of its consumers is waited for."""
        for partition in self.partitions.values():
            partition.recalled = {recalled for recalled in partition.recalled if recalled[0] is not link}

    def drop(self, partition: Partition) -> None:
        """Another process owns the partition: ends its queues, tells their consumers, gives their memory back."""
        self._withdraw(partition)
        handed_over = partition.state is PartitionState.WRITTEN
        partition.state = PartitionState.GONE
        self.partitions.pop(partition.number, None)
        for queue in partition.queues.values():
            if queue.record.on and not handed_over:
                _tell_lost(queue)
            _end(queue, pb.NOT_OWNER)
            queue.end(durable=False)
        self._unseal_all(partition)
        if (journeys := partition.journeys) is not None and journeys.live:
            journeys.forget(partition.queues)
        partition.queues.clear()
        for entries in partition.orphans.values():
            partition.context.forget(entries, NOBODYS, durable=False)
        partition.orphans.clear()
        partition.notes.clear()

    def delete(self, definition: QueueDefinition) -> None:
        """The topology has no such queue any more."""
        queue_id = slot_of(definition)
        self.unusable.discard(queue_id)
        self.departed[queue_id] = definition
        if len(self.departed) > _REMEMBERED:
            del self.departed[next(iter(self.departed))]
        self.queues.pop(queue_id, None)
        partition = self.partitions.get(definition.partition)
        queue = partition.queues.pop(queue_id, None) if partition else None
        if queue:
            if queue.record.on:
                _tell_deleted(queue, self.now())
            _end(queue, pb.UNKNOWN_QUEUE)
            queue.end(durable=True)
        self.unseal(queue_id)
        self.deleting.over(queue_id)

    def _replay(self, awaited: Awaited) -> None:
        self.when_certain(awaited.replay)

    def _unseal_all(self, partition: Partition) -> None:
        for queue_id in self._sealed.keys() & partition.queues.keys():
            self.unseal(queue_id)
        for queue_id in partition.queues:
            self.deleting.left(queue_id)

    def _withdraw(self, partition: Partition) -> None:
        for queue_id in partition.queues:
            self.queues.pop(queue_id, None)


def _tell_deleted(queue: Queue, now: int) -> None:
    """Records that the queue's messages are dropped with it."""
    if not (uids := queue.all_gone(safe=False)):
        return
    expired = queue.use.expired(now)
    if expired:
        queue.record.expired(uids, stages.QUEUE_TTL)
    queue.record.dropped(uids, stages.EXPIRED if expired else stages.QUEUE_DELETED)


def _tell_lost(queue: Queue) -> None:
    """Records that messages that are not on disk are lost: the next owner does not find them."""
    if uids := queue.all_gone(safe=True):
        queue.record.dropped(uids, stages.NO_OWNER)


def _end(queue: Queue, reason: pb.Reason.ValueType) -> None:
    for consumer in queue.consumers:
        queue.consumers.remove(consumer)
        consumer.link.ended(consumer, reason)
