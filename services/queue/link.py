"""One gateway's stream: its frames are carried out in order, what they bring about is collected in the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet

import structlog

from services.common.clock import epoch_ms
from services.queue import publishing, requests
from services.queue.consumer_events import attached, cancelled, detached
from services.queue.consumers import Consumer
from services.queue.entry import Holder
from services.queue.host import Host
from services.queue.outbox import Outbox
from services.queue.partition import Partition, State
from services.queue.queue_type import Queue
from services.queue.ticket import Receipt, Ticket
from services.queue.traced_batch import TracedAnswers, TracedBatch
from services.queue.transactions import Transactions
from services.rpc import queue_pb2 as pb

log = structlog.get_logger()

_RETURN_SECONDS = 1.0  # in which a gateway that lives has another stream


class Link(Holder):
    """Holder of what it has been sent and has not settled."""

    def __init__(self, host: Host, wake: Callable[[], None]) -> None:
        """`wake` is called when there is something to say that nothing received brought about."""
        super().__init__()
        self.outbox = Outbox(self._something_to_say)
        self.deliveries = self.outbox.deliveries
        self._wake = wake
        self.name = ""
        self._host = host
        self._consumers: dict[int, tuple[Consumer, Queue]] = {}
        self._awaiting: dict[int, tuple[Partition, pb.AttachConsumer]] = {}  # by consumer
        self._touched: WeakSet[Queue] = WeakSet()
        self._transactions = Transactions(host, self)
        self._suspended: list[pb.LinkFrame] = []
        self._settling = 0  # frames with settlements, so far
        self._tells = False
        self._member = ""
        self._told: dict[int, int] = {}  # partition → epoch whose owner has heard everything
        self._unheard: set[int] = set()  # partitions that the frame at hand speaks of, and that are not here yet
        self._turned_away: set[int] = set()  # partitions of which something was refused that was published here
        self._receiving = False
        self._unused: list[Queue] = []  # left without a consumer

    def hello(self, hello: pb.Hello) -> None:
        """The first frame said who it is."""
        self.name, self.origin, self._tells, self._member = hello.name, hello.origin, hello.tells, hello.member
        # The peer has given up a stream that it had before, and has sent elsewhere what still comes from there.
        for former in [link for link in self._host.links if link.is_former_of(self)]:
            former.close()
        self._host.links.add(self)
        self._host.expected.came(self.origin)
        if self._host.blocked:
            self.outbox.frame.blocked = True

    # -------------------------------------------------------------- frames

    def receive(self, frame: pb.LinkFrame) -> None:
        """Carries a frame out; one that comes while leases may have run out waits for certainty."""
        if self.broken:
            return
        if not self._host.certain:
            self._suspended.append(frame)
            return
        self._receiving = True
        self._unheard.clear()
        now = epoch_ms()
        if frame.attaches:
            self._attach_all(frame.attaches, now)
        if frame.settles:
            self._settle_all(frame.settles, now)
        # Before messages: an immediate one wants a consumer that can take it, and its publisher knows of this one.
        for credit in frame.credits:
            self._credit(credit, now)
        for raw in frame.publishes:
            self._publish(raw, now)
        for request in frame.requests:
            self._request(request, now)
        for handle in frame.detaches:
            self._detach(handle, now)
        for step in frame.transactions:
            self._transactions.step(step, now)
        self._hear(frame.told)
        self._host.check_memory()
        self._receiving = False

    def resume(self) -> None:
        """Carries out what has waited for the leases."""
        frames, self._suspended = self._suspended, []
        for frame in frames:
            self.receive(frame)
            self._wake()

    def close(self) -> None:
        """The stream is gone, and its consumers with it; what it held waits for a moment, if the gateway may be back.

        While leases may have run out all of that waits: what it held may be another process's to give to others.
        """
        if self.broken:
            return
        self.broken = True
        self._host.links.discard(self)
        self._host.when_certain(self._leave)

    def _leave(self) -> None:
        if self._tells and all(link.origin != self.origin for link in self._host.links):
            self._host.expected.expect(self.origin, _RETURN_SECONDS)
        now = epoch_ms()
        for consumer, queue in list(self._consumers.values()):
            self._host.events.publish(detached(consumer, queue.options, self.name))
            if queue.detach(consumer, now):
                self._unused.append(queue)
        self._consumers.clear()
        self._awaiting.clear()
        for partition in self._host.registry.partitions.values():
            partition.recalled = {recalled for recalled in partition.recalled if recalled[0] is not self}
        self._transactions.close()
        if self._tells:
            self._host.departed[self.origin] = self
            self._host.tasks.start(self._end_later(), f"link of {self.name} ends")
        else:
            self._end()

    async def _end_later(self) -> None:
        await asyncio.sleep(_RETURN_SECONDS)
        self._host.when_certain(self._end)

    def _end(self) -> None:
        """What it held goes back to its place, unless it was claimed; queues go with their last consumer."""
        if self._host.departed.get(self.origin) is self:
            del self._host.departed[self.origin]
        now = epoch_ms()
        for queue in self._unused:
            if not len(queue.consumers):
                self._host.delete_soon(queue.options.queue_id)
        for queue in list(self._touched):
            queue.release_held_by(self, now)
        self._touched.clear()
        self._host.check_memory()

    def is_former_of(self, link: Link) -> bool:
        """Whether the peer had this stream before, to the same end; it may still try one to a process that was here."""
        return (self.origin, self._member) == (link.origin, link._member)

    def has_told(self, partition: Partition) -> bool:
        """Whether the peer has said all that its consumers hold of a partition, if it ever does."""
        return not self._tells or self._told.get(partition.number) == partition.epoch

    # -------------------------------------------------------------- answers

    def done(self, sequence: int) -> None:
        """A batch has been answered in full."""
        self.outbox.frame.done.append(sequence)

    def refuse(self, sequence: int, first: int, count: int, queue_id: int, reason: pb.Reason.ValueType) -> None:
        """Part of a batch is not taken."""
        self.outbox.frame.refusals.add(sequence=sequence, first=first, count=count, queue_id=queue_id, reason=reason)

    def ended(self, consumer: Consumer, reason: pb.Reason.ValueType) -> None:
        """A consumer's queue is gone from here."""
        if found := self._consumers.pop(consumer.handle, None):
            self._host.events.publish(cancelled(consumer, found[1].options, self.name, reason))
            self.outbox.frame.cancelled.add(consumer=consumer.handle, reason=reason)

    def holds_of(self, queue: Queue) -> None:
        """It may hold entries of `queue` from now on."""
        self._touched.add(queue)

    def _something_to_say(self) -> None:
        # Whoever is receiving writes by itself.
        if not self._receiving:
            self._wake()

    # -------------------------------------------------------------- the parts of a frame

    def _publish(self, raw: bytes, now: int) -> None:
        batch = pb.PublishBatch.FromString(raw)
        if batch.transaction:
            self._transactions.publish(raw, batch)
        else:
            answers = TracedAnswers(TracedBatch(self._host, batch), self) if batch.traced else self
            publishing.accept(self._host, Ticket(answers, batch.sequence, self._turned_away), raw, batch, now)

    def _attach_all(self, attaches: Sequence[pb.AttachConsumer], now: int) -> None:
        """All of them first: what one holds must not be delivered to another that came before it in the frame."""
        touched = [queue for attach in attaches if (queue := self._attach(attach, now)) is not None]
        for queue in dict.fromkeys(touched):
            self._begin(queue, now)

    def _begin(self, queue: Queue, now: int) -> None:
        """The gateway has said what it holds from before: the rest of what it had is anybody's."""
        former = self._host.registry.partitions[queue.options.partition].formers.get(self.origin)
        for holder in (former, self._host.departed.get(self.origin)):
            if holder:
                queue.release_held_by(holder, now)
        queue.dispatch(now)

    def _attach(self, attach: pb.AttachConsumer, now: int) -> Queue | None:
        registry, handle, queue_id = self._host.registry, attach.consumer, attach.queue_id
        queue = registry.queues.get(queue_id)
        if queue is None and (partition := registry.awaited(queue_id)):
            self._awaiting[handle] = (partition, attach)
            partition.recalled.discard((self, queue_id))
            partition.claiming.append(partial(self._attach_later, attach))
            return None
        if queue is None or queue_id in registry.deleting:
            reason = registry.missing(queue_id) if queue is None else pb.UNKNOWN_QUEUE
            self.outbox.frame.attached.add(consumer=handle, reason=reason)
            if reason == pb.NOT_OWNER and attach.again:
                self._not_heard(registry.definitions[queue_id].partition)
            return None
        if before := self._consumers.pop(handle, None):
            # It asks again because it has not heard the answer.
            before[1].consumers.remove(before[0])
        consumer = _consumer(attach, self)
        reason = queue.attach(consumer, attach.held, now, again=attach.again)
        answer = self.outbox.frame.attached.add(consumer=handle, reason=reason)
        if reason != pb.NONE:
            answer.text = f"queue '{queue.options.name}' is in exclusive use"
            return None
        self._consumers[handle] = (consumer, queue)
        self._touched.add(queue)
        self._host.events.publish(attached(consumer, queue.options, self.name, again=attach.again))
        return queue

    def _attach_later(self, attach: pb.AttachConsumer) -> None:
        partition, latest = self._awaiting.get(attach.consumer, (None, None))
        if partition is None or latest is not attach:
            return
        del self._awaiting[attach.consumer]
        now = epoch_ms()
        queue = self._attach(attach, now)
        if queue is not None:
            # After every other consumer that waits, for the same reason as in a frame.
            partition.waiting.append(partial(self._begin, queue, now))

    def _hear(self, told: Sequence[pb.Told]) -> None:
        for each in told:
            if each.partition not in self._unheard:
                self._told[each.partition] = each.epoch

    def _not_heard(self, partition: int) -> None:
        # The peer may know sooner than this process that the partition is here. It is told, and says everything again.
        self._told.pop(partition, None)
        self._unheard.add(partition)

    def _settle_all(self, settles: Sequence[pb.Settle], now: int) -> None:
        self._settling += 1
        for settle in settles:
            self._settle(settle, now)
        receipt = Receipt(partial(self.outbox.settled, self._settling))
        self._host.writer.barrier(receipt)
        receipt.part_done()

    def _settle(self, settle: pb.Settle, now: int) -> None:
        if settle.transaction:
            self._transactions.settle(settle)
            return
        queue = self._host.registry.settling(settle.queue_id)
        if queue is not None:
            queue.settle(settle.outcome, list(settle.uids), now)
        elif partition := self._host.registry.awaited(settle.queue_id):
            partition.waiting.append(partial(self._settle, settle, now))
        elif (partition := self._host.registry.partition_of(settle.queue_id)) and partition.state is State.WRITTEN:
            self.outbox.frame.unsettled.append(settle)

    def _credit(self, credit: pb.Credit, now: int) -> None:
        found = self._consumers.get(credit.consumer)
        if found:
            consumer, queue = found
            queue.credit(consumer, credit.messages, credit.bytes, now)
        elif awaited := self._awaiting.get(credit.consumer):
            awaited[0].waiting.append(partial(self._credit, credit, now))

    def _request(self, request: pb.QueueRequest, now: int) -> None:
        registry, queue_id = self._host.registry, requests.queue_id_of(request)
        queue = registry.queues.get(queue_id)
        if queue is None and (partition := registry.awaited(queue_id)):
            partition.waiting.append(partial(self._request, request, now))
        elif queue is None or queue_id in registry.deleting:
            reason = registry.missing(queue_id) if queue is None else pb.UNKNOWN_QUEUE
            self.outbox.frame.replies.add(id=request.id, reason=reason)
        else:
            requests.answer(self._host, self, request, queue, now)

    def _detach(self, handle: int, now: int) -> None:
        if awaited := self._awaiting.get(handle):
            awaited[0].waiting.append(partial(self._detach, handle, now))
            return
        found = self._consumers.pop(handle, None)
        if found:
            consumer, queue = found
            self._host.events.publish(detached(consumer, queue.options, self.name))
            if queue.detach(consumer, now):
                self._host.delete_soon(queue.options.queue_id)
        self.outbox.frame.detached.append(handle)


def _consumer(attach: pb.AttachConsumer, link: Link) -> Consumer:
    return Consumer(
        attach.consumer,
        link,
        tag=attach.tag,
        connection=attach.connection,
        exclusive=attach.exclusive,
        settled=attach.settled,
        browse=attach.browse,
        priority=attach.priority,
        messages=attach.messages,
        size=attach.bytes,
    )
