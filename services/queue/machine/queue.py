"""A queue of a partition that this process owns, as a pure machine, put together of its parts.

Commands and the time (Unix, ms) go in; deliveries go into the columns of the consumers' links, everything else that
has to happen into the QueueContext that it was made with. In which order entries leave, its type says (`types/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from services.queue.machine import parcels
from services.queue.machine.arrival import Arrival
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import Claims
from services.queue.machine.consumers import Consumer, ConsumerLink, Consumers
from services.queue.machine.context import QueueContext
from services.queue.machine.delivery.dispatcher import Dispatcher
from services.queue.machine.delivery.live import LiveConsumers
from services.queue.machine.entrance import Entrance, Refused
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, Holder
from services.queue.machine.features.admission import Admission
from services.queue.machine.features.kept import Kept
from services.queue.machine.flow import Flow
from services.queue.machine.giving_back import GivingBack
from services.queue.machine.message import Holding
from services.queue.machine.modifying import UNCHANGED, Change, Modifying
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.ready import CreateReady
from services.queue.machine.overflow import OverflowPolicy
from services.queue.machine.picking import Picking
from services.queue.machine.record import QueueRecord, uids_of
from services.queue.machine.room import Room
from services.queue.machine.seeking import Seeking
from services.queue.machine.settlement import EntrySettlement
from services.queue.machine.transacted import Transacted
from services.queue.machine.use import Use
from services.rpc import queue_pb2 as pb


class Queue:
    """What the shell asks of it. `holding`: the bytes that it keeps; `use`: whether it goes for want of it; `flow`: of
    one from which publishers are held back, whether they are; `features`: what they keep of messages. The others are
    what else it is asked for: see their classes.
    """

    def __init__(
        self, create_ready: CreateReady, options: QueueOptions, context: QueueContext, policy: OverflowPolicy, now: int
    ) -> None:
        self.options = options
        most = options.live_consumers
        self.consumers = Consumers(LiveConsumers(context.epoch, most) if most else None)
        self._entries = Entries(options, context, create_ready)
        self.use = Use(options, self.consumers, self._entries, now)
        self._claims = Claims(self._entries)
        self._room = Room(self._entries, policy)
        self._heed_flow(policy)
        self._delivery = delivery = Dispatcher(self._entries, self.consumers)
        self._backlog = Backlog(self._entries, delivery)
        self.modifying = Modifying(self._entries, delivery)
        self._settlement = EntrySettlement(self._entries, self._claims, self._backlog, self._room, self.modifying)
        entrance = Entrance(
            self._entries, self.consumers, self._claims, delivery, self._backlog, self._room, self._settlement
        )
        self.seeking = Seeking(self._entries, self._claims, entrance, self._backlog, self._room)
        self._admission = Admission(entrance, self._entries, self._room, now)
        self.features = Kept(self._entries, self._admission, self.modifying)
        self.giving_back = GivingBack(self._claims, self._backlog, self._settlement)
        self.picking = Picking(self._entries)
        self.transacted = Transacted(self._entries, self._claims, self._room, self._settlement, self._admission)
        if options.unused_ms is not None:
            context.expect(options.queue_id)

    def adopt(self, options: QueueOptions, policy: OverflowPolicy, now: int) -> None:
        """Its policies say something else, and it heeds that from now on; the clock drops what is too much then.

        Those that are here expire when they would have, as in RabbitMQ.
        """
        self.use.adopt(options, now)
        self._entries.adopt(options)
        self._admission.heed(now)
        self.options, self._room.policy = options, policy
        self._heed_flow(policy)
        self._entries.context.expect(options.queue_id)

    def _heed_flow(self, policy: OverflowPolicy) -> None:
        self.flow = Flow(self._entries) if policy.holds_back else None
        self._entries.on_more = self._entries.context.on_more if self.flow else None
        if self._entries.on_more and self._entries.count:
            self._entries.on_more(self.options.queue_id)

    @property
    def record(self) -> QueueRecord:
        """What it tells the ledger."""
        return self._entries.record

    @property
    def holding(self) -> Holding:
        """The bytes that it keeps in memory."""
        return self._entries.holding

    @property
    def unsettled(self) -> Mapping[int, Entry]:
        """By uid, what was handed out and of which nobody has said yet what became of it."""
        return self._entries.unsettled

    @property
    def ready_count(self) -> int:
        """Messages that wait for a consumer, or for their time."""
        return self._entries.count

    # -------------------------------------------------------------- messages

    def publish(self, arrival: Arrival, now: int, *, reserved: bool = False) -> list[Refused]:
        """Takes a run in, delivers what can be; `reserved`: room was kept for it by `reserve`.

        What has no reason among the refused is not taken because it was here before: its publisher need not know.
        """
        return self._admission.publish(arrival, now, reserved=reserved)

    def recover(self, entries: list[Entry], now: int) -> None:
        """Puts back what was on disk, positions ascending, before there are consumers; may be called in parts.

        Acquired ones are somebody's already, until they are settled, claimed or released.
        """
        if any(entry.expires for entry in entries):
            self._backlog.expects_expiry(own=any(entry.message.facts.ttl_ms is not None for entry in entries))
        self._entries.recover(entries, now)
        if self._room.is_over:
            self._entries.context.expect(self.options.queue_id)

    def entries(self) -> Iterator[Entry]:
        """What is ready and what is unsettled; to be used up before anything changes."""
        return iter(self._entries)

    def settle(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], now: int, change: Change = UNCHANGED) -> str:
        """What became of deliveries; unknown uids are ignored. Gives why not all of a change could be heeded."""
        return self._settlement.settle(outcome, uids, now, change)

    def get(self, link: ConsumerLink, now: int, *, settled: bool) -> Entry | None:
        """Hands out one entry without a consumer, whosever group it is of; nothing while it `lags`."""
        self.use.touch(now)
        if self.lags(now) or (entry := self._entries.ready.pop()) is None:
            return None
        record, uid = self.record, entry.message.uid
        if record.on:
            record.delivered(record.places_for("", "")[entry.attempts > 0], [uid])
        if settled:
            self._entries.settled([entry])
        else:
            entry.holder = link
            self._entries.unsettled[uid] = entry
            self._entries.tell_held(None, entry)
            self._entries.handed_out([entry])
        return entry

    def discard(self, entries: list[Entry], reason: str, now: int) -> None:
        """Dead-letters entries that are out of the list already, or drops them."""
        self._entries.discard(entries, reason, now)

    # -------------------------------------------------------------- consumers

    def attach(self, consumer: Consumer, held: Sequence[int], now: int, *, again: bool) -> pb.Reason.ValueType:
        """NONE, or why not. Nothing is delivered before the next `dispatch`."""
        if not again and self.consumers.refuses(exclusive=consumer.exclusive):
            return pb.EXCLUSIVE_USE
        self.use.attached(now)
        self.consumers.add(consumer)
        if self.record.on:
            consumer.places = self.record.places_for(consumer.connection, consumer.tag)
        if held:
            self.claim(held, consumer.link, now, consumer)
        return pb.NONE

    def claim(self, held: Sequence[int], link: ConsumerLink, now: int, consumer: Consumer | None = None) -> None:
        """`link` holds these from before; without a `consumer`, none stands for them."""
        if entries := self._claims.claim(held, link, consumer, now):
            self._entries.handed_out(entries)

    def not_others(self, uids: Iterable[int], holder: Holder) -> list[int]:
        """Leaves out what another gateway has been given since `holder`'s had it: what it says came too late."""
        return self._claims.not_others(uids, holder)

    def detach(self, consumer: Consumer, now: int) -> bool:
        """Ends a consumer, what it holds stays unsettled; True when the queue is to be deleted with its last one."""
        was_live = self.options.live_consumers and self.consumers.is_live(consumer)
        self.consumers.remove(consumer)
        if was_live or self._delivery.chooses:
            self.dispatch(now)
        return self.use.detached(now)

    def hands_groups_on(self, consumer: Consumer) -> bool:
        """Whether others get more of a group of messages, of which this one holds some, as soon as it has ended."""
        return self._delivery.hands_groups_on(consumer)

    def had_consumers(self, now: int) -> None:
        """A former owner's: with auto-delete it goes unless one of them, or another, comes within half a minute."""
        self.use.before(now)
        self._entries.context.expect(self.options.queue_id)

    def credit(self, consumer: Consumer, messages: int, size: int, now: int) -> None:
        """Adds credit and delivers."""
        consumer.messages += messages
        consumer.size += size
        self.consumers.refresh(consumer)
        if self._entries.ready.count:
            self.dispatch(now)

    def dispatch(self, now: int) -> None:
        """Delivers what can be; nothing while it `lags`."""
        self._backlog.dispatch(now)

    def lags(self, now: int) -> bool:
        """Whether more has to go, to come back, or is due, than does in one turn: what is behind it waits for that."""
        return self._backlog.lags(now)

    @property
    def unfinished(self) -> bool:
        """Whether consumers that choose have more to look at than goes in one turn: the clock's `dispatch` goes on."""
        return self._delivery.unfinished

    def has_offered_all(self, consumer: Consumer) -> bool:
        """Whether it has been offered all that waited when it had credit: then nothing that waits is for it."""
        return self._delivery.has_offered_all(consumer)

    # -------------------------------------------------------------- life

    def expire(self, now: int) -> None:
        """The clock's: discards messages that are past their time, or too many, as many as go in one turn."""
        self._backlog.expire(now)
        self._room.trim(now)
        for window in self._admission.windows():
            window.tidy(now)

    def deadline(self) -> int:
        """When `expire` has something to do next, or the queue is to be deleted, or 0."""
        if self._room.is_over:
            return 1
        its = (window.deadline() for window in self._admission.windows())
        return min((time for time in (*self.use.deadlines(), *self._backlog.deadlines(), *its) if time), default=0)

    def end(self, *, durable: bool) -> int:
        """Gives its memory back (`durable`: dequeues in the journal too); gives how many messages were ready."""
        count = self._entries.count
        parcels.ended(self._entries)
        entries = self._entries.clear()
        if durable:
            self._entries.forget(entries)
        else:
            self._entries.forget_dequeued(entries)
        self._end_features(durable=durable)
        return count

    def all_gone(self, *, safe: bool) -> list[int]:
        """It is about to `end`: the messages that it had, without those that are on disk if these are `safe` there."""
        entries = (entry for entry in self._entries if entry.part is None or not safe)
        return [*parcels.ended(self._entries), *uids_of(entries)]

    def give_up(self) -> list[Entry]:
        """It ends before it was served: gives what it was given back, which is somebody else's from now on."""
        entries = self._entries.clear()
        self._end_features(durable=False)
        return entries

    def _end_features(self, *, durable: bool) -> None:
        for window in self._admission.windows():
            window.end(durable=durable)
        if self._entries.annotated:
            self._entries.annotated.end(durable=durable)
