"""One gateway's stream: its frames are carried out in order, the answers are collected in the outbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from weakref import WeakKeyDictionary

from services.common.containment import for_each
from services.common.errors import BrokerError
from services.common.message.indexes import choice
from services.common.selectors.selector import Selector, selector
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.journal.batches import Batches
from services.queue.journal.content import Source
from services.queue.journal.ticket import Receipt
from services.queue.links import publishing, requests, settling
from services.queue.links.attaching import Awaiting, decided_first
from services.queue.links.consumer_events import attached, cancelled, detached
from services.queue.links.draining import end_credit
from services.queue.links.ending import end
from services.queue.links.full import Full
from services.queue.links.last_words import LastWords, last_words_of
from services.queue.links.on_the_way import OnTheWay
from services.queue.links.outbox import Outbox
from services.queue.links.peer_reports import PeerReports
from services.queue.links.releasing import release_held_by, release_in_turns
from services.queue.links.selecting import Selecting
from services.queue.links.stealing import steal
from services.queue.links.transactions import Transactions
from services.queue.links.until_heard import until_heard
from services.queue.machine.columns import Columns, Raw, decoded, queue_ids_of
from services.queue.machine.consumers import Consumer
from services.queue.machine.entry import Holder
from services.queue.machine.newcomer import newcomer
from services.queue.machine.queue import Queue
from services.queue.machine.times import put_right
from services.queue.observe.traced_batch import TracedAnswers, TracedBatch
from services.queue.partitions.partition import Awaited, Partition
from services.rpc import queue_pb2 as pb

_RETURN_SECONDS = 1.0  # within which a gateway that is alive opens another stream


class PeerLink(Holder):
    """Holder of the deliveries that the gateway has been sent and has not settled."""

    def __init__(self, host: Host, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """`wake` is called when there is something to send that is no answer to a frame just received.

        `fail` ends the stream, with the fault of a frame that had waited and could not be carried out.
        """
        super().__init__()
        self.outbox = Outbox(self._something_to_say, host.peers_bodies)
        self.deliveries = self.outbox.deliveries
        self._host, self._wake, self.fail = host, wake, fail
        self.consumers: dict[int, tuple[Consumer, Queue]] = {}
        self.awaiting = Awaiting()
        self.touched: WeakKeyDictionary[Queue, None] = WeakKeyDictionary()  # in the order of use
        self._transactions = Transactions(host, self)
        self._suspended: list[tuple[pb.LinkFrame, Sequence[Raw]]] = []
        self._settling = 0  # frames with settlements, so far …
        self._receipt = self._next_receipt()  # … and that of the next one, some of which may be carried out ahead
        self.name = self.member = ""  # `member` is whom the peer addresses: perhaps a former one at this address
        self.selections: dict[int, Selecting] = {}  # by their requests
        self.told = PeerReports(host.registry)
        self._tells, self._receiving, self.on_the_way = False, False, OnTheWay(host, self)
        self._unused: list[Queue] = []  # queues left without a consumer
        self._batches = Batches(host.registry.partitions, host.unheard)

    def hello(self, hello: pb.Hello) -> bool:
        """Takes the first frame's Hello; False when the peer has opened a later stream: this one is ignored then."""
        self.name, self.origin, self._tells, self.member = hello.name, hello.origin, hello.tells, hello.member
        self._batches.terms.are_said, self.outbox.peer_reads_keys = hello.says_terms, hello.reads_keys
        if not self._host.greeted.is_latest(hello):
            self.broken = True
            return False
        # The peer has given up its former stream, and has sent the frames that still arrive on it elsewhere.
        for former in [link for link in self._host.links if (link.origin, link.member) == (self.origin, self.member)]:
            former.close()
        self._host.links[self] = None
        self._host.expected.came(self.origin)
        if full := self._host.full:
            self.tell_full(full)
        return True

    # -------------------------------------------------------------- frames

    def receive(self, frame: pb.LinkFrame, publishes: Sequence[Raw]) -> None:
        """Carries a frame out, and the batches in it; one that comes while leases may have run out waits for them."""
        if self.broken:
            return
        if not self._host.certain:
            self._suspended.append((frame, publishes))
            return
        self._receiving = True
        self.told.begin()
        now = self._host.now()
        self._batches.heard(self.outbox.heard(frame.heard))
        self.on_the_way.hold_up(frame.detaches if self._tells else ())
        if frame.attaches:
            self._attach_all(frame.attaches, now)
        if frame.settles:
            self._settle_all(frame.settles, now)
        # Before messages: an immediate one needs a consumer with credit, and its publisher knows of this consumer.
        if frame.credits:
            self._credit_all(frame.credits, now)
        if publishes:
            for_each("taking messages in", publishes, partial(self._publish, now=now), self._not_taken)
        if frame.requests:
            requests.answer_all(self._host, self, frame.requests)
        self._detach_all(frame.detaches, now)
        self.on_the_way.wait()
        self.outbox.peer_has_read()
        for step in frame.transactions:
            self._transactions.step(step, now)
        self._host.returning.came(self.origin, self.told.hear(frame.told, now))
        self._batches.sent_again(frame.sent_again)
        self._batches.forget_former(self.origin)
        self._host.check_full()
        self._receiving = False

    def resume(self) -> None:
        """Carries out the frames that have waited for the leases, or since for what one of them claims."""
        frames, self._suspended = self._suspended, []
        for number, (frame, publishes) in enumerate(frames, 1):
            if self._host.claims.concern(self):
                self._suspended += frames[number - 1 :]
                break
            try:
                self.receive(frame, publishes)
            except Exception as fault:  # noqa: BLE001 - as when it is carried out at once
                self._suspended = frames[number:]
                self.fail(fault)
                break
        if frames:
            self._wake()

    def close(self) -> None:
        """The stream is gone, and its consumers with it; its deliveries are kept a moment, if the gateway may return.

        While leases may have run out all of that waits: the deliveries may belong to another owner by now.
        """
        if self.broken:
            return
        self.broken = True
        self.on_the_way.wait()
        self._batches.close()
        self.outbox.close()
        self._host.links.pop(self, None)
        words, self._suspended = last_words_of(self._suspended), []
        self._host.when_certain(partial(self._leave, words, self._host.late.begin(self)))

    def _leave(self, words: Sequence[pb.Settle], late: int) -> None:
        if self._tells and all(link.origin != self.origin for link in self._host.links):
            self._host.expected.expect(self.origin, _RETURN_SECONDS)
        now = self._host.now()
        consumers, self.consumers = self.consumers, {}
        for_each("detaching a consumer", consumers.values(), partial(self._leave_queue, now=now))
        # Not before: what becomes free by one of them must not be delivered to another consumer of this stream.
        LastWords(self._host, self, late).say(words, self._transactions.close)
        self.awaiting.clear()
        if self._tells:
            self._host.departed[self.origin] = self
            self._host.tasks.start(self._end_later(), f"link of {self.name} ends")
        else:
            self._host.turns.do(0, self._end)

    def _leave_queue(self, found: tuple[Consumer, Queue], now: int) -> None:
        consumer, queue = found
        self._host.events.publish(detached(consumer, queue.options, self.name))
        if self._tells:
            self._host.returning.left(consumer, queue.options)
        if queue.detach(consumer, now):
            self._unused.append(queue)
        if self._tells:
            queue.use.out_of_sight(now)

    async def _end_later(self) -> None:
        await until_heard(self._host, self.origin, self.touched, _RETURN_SECONDS)
        self._end()

    def _end(self) -> None:
        """Requeues its deliveries at their places, unless they were claimed; deletes queues without consumers."""
        self.over = True
        if self._host.departed.get(self.origin) is self:
            del self._host.departed[self.origin]
        touched = list(self.touched)
        self.touched.clear()
        # Before those come that have waited for it, and they before queues go for want of consumers.
        release_in_turns(self._host, touched, self)
        self._host.turns.do(0, partial(self._ended, touched))

    def _ended(self, touched: Sequence[Queue]) -> None:
        self._host.returning.over(self)
        self.on_the_way.over()
        for queue in self._unused:
            # Another Queue object if the partition has left and come back: that one has the consumers.
            present = self._host.registry.queues.get(queue.options.queue_id)
            if present is not None and not len(present.consumers):
                self._host.delete_soon(queue.options.queue_id)
        for_each("serving those that are left", touched, lambda queue: queue.dispatch(self._host.now()))
        self._host.check_full()

    def has_told(self, partition: Partition) -> bool:
        """Whether the peer has reported all that its consumers hold of a partition; true for peers that never do."""
        return not self._tells or self.told.has(partition)

    # -------------------------------------------------------------- answers

    def done(self, sequence: int) -> None:
        """A batch has been answered in full."""
        self.outbox.frame.done.append(sequence)

    def refuse(self, sequence: int, indexes: Sequence[int], queue_id: SlotId, reason: pb.Reason.ValueType) -> None:
        """Part of a batch is not taken."""
        self.outbox.frame.refusals.add(sequence=sequence, queue_id=queue_id, reason=reason, **choice(indexes))

    def tell_full(self, full: Full) -> None:
        """Has the peer hold back publishers to full queues, and no others."""
        self.outbox.frame.blocked.CopyFrom(pb.Blocked(everywhere=full.everywhere, queue_ids=full.queue_ids))

    def activated(self, consumer: Consumer) -> None:
        """The consumer is its queue's single active one: its gateway tells that to the next owner."""
        self.outbox.frame.activated.add(consumer=consumer.handle, number=consumer.activated)

    def ended(self, consumer: Consumer, reason: pb.Reason.ValueType, text: str = "") -> None:
        """A consumer's queue is gone from here, or there is another reason."""
        if found := self.consumers.pop(consumer.handle, None):
            self._host.events.publish(cancelled(consumer, found[1].options, self.name, reason))
            self.outbox.frame.cancelled.add(consumer=consumer.handle, reason=reason, text=text)
            if reason == pb.STOLEN and self._tells:
                self.on_the_way.stolen(found[1])

    def holds_of(self, queue: Queue) -> None:
        """The link may hold entries of `queue` from now on."""
        self.touched[queue] = None

    def _something_to_say(self) -> None:
        # While a frame is being received, the handler writes after it.
        if not self._receiving:
            self._wake()

    # -------------------------------------------------------------- the parts of a frame

    def _publish(self, raw: Raw, now: int) -> None:
        batch, bodies = decoded(raw)
        if batch.kept:
            bodies = self.outbox.kept(batch, bodies)
        raw = put_right(raw, batch, bodies, now)
        source = Source(raw, batch, Columns(batch, bodies, self._host.interned, published=self._tells))
        if batch.transaction:
            self._transactions.publish(batch, source)
        else:
            answers = TracedAnswers(TracedBatch(self._host, source), self) if source.traced else self
            publishing.accept(self._host, self._batches.begin(answers, batch), source, now)

    def _not_taken(self, raw: Raw, error: BrokerError) -> None:
        """Refuses the whole batch, though some of it may have been taken; its transaction cannot be prepared."""
        batch, _ = decoded(raw)
        if batch.transaction:
            self._transactions.spoil(batch.transaction, error.text)
        for queue_id in queue_ids_of(batch):
            self.refuse(batch.sequence, range(len(batch.uids)), queue_id, pb.OTHER)
        self.done(batch.sequence)

    def _attach_all(self, attaches: Sequence[pb.AttachConsumer], now: int) -> None:
        """Attaches all before any is served: what one holds must not be delivered to one before it in the frame."""
        touched: dict[Queue, None] = {}
        attach, tell = partial(self._attach_to, touched, now=now), partial(self._not_attached, touched)
        for_each("attaching a consumer", attaches, attach, tell)
        for_each("serving new consumers", touched, self._begin_when_claimed)

    def _attach_to(self, touched: dict[Queue, None], attach: pb.AttachConsumer, now: int) -> None:
        if (queue := self._attach(attach, now)) is not None:
            touched[queue] = None

    def _begin_when_claimed(self, queue: Queue) -> None:
        self._host.claims.then(queue, partial(self._begin, queue))

    def _begin(self, queue: Queue) -> None:
        """The gateway has said what it still holds of the queue: the rest of its former deliveries is requeued."""
        if self.broken:  # not all of it is claimed, perhaps: its next stream does that
            return
        former = self._host.registry.partitions[queue.options.partition].formers.get(self.origin)
        for holder in (former, self._host.departed.get(self.origin)):
            if holder:
                release_held_by(self._host, queue, holder)
        queue.dispatch(self._host.now())

    def _attach(self, attach: pb.AttachConsumer, now: int) -> Queue | None:
        registry, handle, queue_id = self._host.registry, attach.consumer, SlotId(attach.queue_id)
        queue = registry.serving(queue_id, attach.term)
        if queue is None and (partition := registry.awaited(queue_id)):
            partition.recalled.discard((self, queue_id))
            # Consumers that re-attach come before new ones: an exclusive consumer finds its place free.
            self._await(partition, attach, partition.claiming if attach.again else partition.waiting)
            return None
        if queue is None:
            reason = registry.missing(queue_id)
            self.outbox.frame.attached.add(consumer=handle, reason=reason)
            if reason == pb.NOT_OWNER and attach.again:
                self.told.not_heard(registry.definitions[queue_id].partition)
            return None
        if decided := decided_first(self._host, queue, attach):
            self._await(decided, attach, decided.claiming if attach.again else decided.waiting)
            return None
        self.touched[queue] = None
        if attach.stray:
            self._host.claims.claim(queue, self, None, attach.held)
            self.outbox.frame.attached.add(consumer=handle)
            return queue
        if before := self.consumers.pop(handle, None):
            # The gateway asks again because it has not received the answer.
            before[1].consumers.remove(before[0])
        consumer = newcomer(attach, self, queue, now)
        reason = queue.attach(consumer, (), now, again=attach.again)
        answer = self.outbox.frame.attached.add(consumer=handle, reason=reason, age=consumer.age)
        answer.timeout_ms, answer.browse, answer.stops = queue.options.consumer_timeout_ms, consumer.browse, True
        if reason != pb.NONE:
            answer.text = f"queue '{queue.options.name}' is in exclusive use"
            return None
        self.consumers[handle] = (consumer, queue)
        queue.modifying.refuse(consumer, attach.not_for, here=False)  # as it said to a former owner
        self._host.claims.claim(queue, self, consumer, attach.held)
        self._host.events.publish(attached(consumer, queue.options, self.name, again=attach.again))
        if attach.steals:
            steal(queue, consumer, attach, now, registry.partitions[queue.options.partition].epoch)
            answer.theft = consumer.theft
        return queue

    def _await(self, awaited: Awaited, attach: pb.AttachConsumer, waiting: list[Callable[[], None]]) -> None:
        self.awaiting.add(awaited, attach)
        kept = selector(attach.selector) if attach.selector else None  # it is at hand, and shall be then
        waiting.append(partial(self._attach_later, attach, kept))

    def _not_attached(self, touched: dict[Queue, None], attach: pb.AttachConsumer, error: BrokerError) -> None:
        self.consumers.pop(attach.consumer, None)
        self.outbox.frame.attached.add(consumer=attach.consumer, reason=pb.OTHER, text=error.text)
        if queue := self._host.registry.queues.get(SlotId(attach.queue_id)):
            for consumer in queue.consumers:
                if consumer.link is self and consumer.handle == attach.consumer:
                    queue.consumers.remove(consumer)
            touched[queue] = None  # it may have been the single active one

    def _attach_later(self, attach: pb.AttachConsumer, _kept: Selector | None) -> None:
        partition = self.awaiting.take(attach)  # or its credit and detach would wait again, for what is being replayed
        if partition is None or self.broken:
            return
        now, touched = self._host.now(), dict[Queue, None]()
        tell = partial(self._not_attached, touched)
        for_each("attaching a consumer", (attach,), partial(self._attach_to, touched, now=now), tell)
        # After all other waiting consumers are attached, for the same reason as in `_attach_all`.
        partition.waiting += [partial(self._begin_when_claimed, queue) for queue in touched]

    def _settle_all(self, settles: Sequence[pb.Settle], now: int) -> None:
        for_each("settling deliveries", settles, partial(self.settle, now=now))
        self._host.safe_soon(self._receipt)
        self._settling += 1
        self._receipt = self._next_receipt()

    def _next_receipt(self) -> Receipt:
        return Receipt(partial(self.outbox.settled, self._settling + 1))

    def settle(self, settle: pb.Settle, now: int) -> None:
        """As the gateway has said it; of a transaction it is kept until that is decided."""
        if settle.transaction:
            self._transactions.settle(settle)
        else:
            settling.settle(self._host, self, self.outbox, settle, now, self._receipt)

    def _credit_all(self, granted: Iterable[pb.Credit], now: int) -> None:
        for_each("giving a consumer credit", granted, partial(self._credit, now=now), self._not_served)

    def _not_served(self, credit: pb.Credit, _error: BrokerError) -> None:
        """Cancels a consumer that got no credit and would wait for ever: its client may consume again."""
        end(self._host, self, credit.consumer, pb.OTHER)

    def _credit(self, credit: pb.Credit, now: int) -> None:
        if found := self.consumers.get(credit.consumer):
            found[1].credit(found[0], credit.messages, credit.bytes, now)
            end_credit(self._host, self.outbox, credit, self.consumers)
        elif awaited := self.awaiting.of(credit.consumer):
            awaited.waiting.append(partial(self._credit_all, (credit,), now))

    def _detach_all(self, handles: Iterable[int], now: int) -> None:
        tell: Callable[[int, BrokerError], object] = lambda handle, _: self.outbox.frame.detached.append(handle)  # noqa: E731
        for_each("detaching a consumer", handles, partial(self._detach, now=now), tell)

    def _detach(self, handle: int, now: int) -> None:
        if awaited := self.awaiting.of(handle):
            awaited.waiting.append(partial(self._detach_all, (handle,), now))
            return
        if found := self.consumers.pop(handle, None):
            consumer, queue = found
            self._host.events.publish(detached(consumer, queue.options, self.name))
            if queue.detach(consumer, now):
                self._host.delete_soon(queue.options.queue_id)
        self.outbox.frame.detached.append(handle)
