"""A queue of a partition that this process owns, as a pure machine, put together of its parts.

Commands and the time (Unix, ms) go in; deliveries go into the columns of the consumers' links, everything else that
has to happen into the QueueContext that it was made with. In which order entries leave, its type says (`types/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from services.common.ledger.stages import PURGED
from services.queue.machine import turn
from services.queue.machine.arrival import Arrival
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import Claims
from services.queue.machine.consumers import Consumer, ConsumerLink, Consumers
from services.queue.machine.context import QueueContext
from services.queue.machine.delivery.dispatcher import Dispatcher
from services.queue.machine.delivery.live import LiveConsumers
from services.queue.machine.entrance import Entrance, Refused
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, Holder, Undecided
from services.queue.machine.features.admission import Admission
from services.queue.machine.features.keeper import Keeper
from services.queue.machine.flow import Flow
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import Holding
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.ready import CreateReady
from services.queue.machine.overflow import OverflowPolicy
from services.queue.machine.record import QueueRecord, uids_of
from services.queue.machine.room import Room
from services.queue.machine.seeking import Seeking
from services.queue.machine.settlement import EntrySettlement
from services.queue.machine.use import Use
from services.queue.machine.walk import Walk
from services.rpc import queue_pb2 as pb


class Queue:
    """What the shell asks of it. `holding`: the bytes that it keeps; `use`: whether it goes for want of it; `flow`: of
    one from which publishers are held back, whether they are; `seeking`: claims of much.
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
        self._settlement = EntrySettlement(self._entries, self._claims, self._backlog, self._room)
        entrance = Entrance(
            self._entries, self.consumers, self._claims, delivery, self._backlog, self._room, self._settlement
        )
        self.seeking = Seeking(self._entries, self._claims, entrance, self._backlog, self._room)
        self._admission = Admission(entrance, self._entries, self._room, now)
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
    def kept(self) -> int:
        """Bytes that features keep in memory of messages that may be gone."""
        return sum(window.size for window in self._admission.windows())

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

    def recall(self, notes: Sequence[tuple[Note, NotePlace]], entries: Sequence[Entry]) -> None:
        """Gives features back what they noted in the journal; before it takes anything, as these entries.

        What is of a feature that it has no more is not kept.
        """
        keepers = {each.feature: each for each in self._keepers()}
        for keeper in keepers.values():
            keeper.recall(notes, entries)
        self._entries.context.draft.drop_notes([place for note, place in notes if note.feature not in keepers])

    def not_safe(self, uids: AbstractSet[int]) -> None:
        """What these published messages are could not be written: they count as new if they come again."""
        for window in self._admission.windows():
            window.not_safe(uids)

    def unwritten(self) -> Iterator[Note]:
        """What features keep that is not in the journal; to be used up before anything changes."""
        return chain.from_iterable(feature.unwritten() for feature in self._keepers())

    def _keepers(self) -> Iterator[Keeper]:
        yield from self._admission.windows()
        if self._entries.acquired:
            yield self._entries.acquired
        if self._entries.attempts:
            yield self._entries.attempts
        if self._entries.sent_on:
            yield self._entries.sent_on
        if self._entries.aside:
            yield from self._entries.aside.keepers()

    def was_given_back(self, entry: Entry) -> bool:
        """Whether it was somebody's who made no attempt, where that is counted."""
        return self.acquired(entry) > entry.attempts

    def acquired(self, entry: Entry) -> int:
        """How often one was somebody's before, where clients are told; else 0."""
        return self._entries.acquired.of(entry) if self._entries.acquired else 0

    def entries(self) -> Iterator[Entry]:
        """What is ready and what is unsettled; to be used up before anything changes."""
        return iter(self._entries)

    def settle(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], now: int) -> None:
        """What became of deliveries; unknown uids are ignored."""
        self._settlement.settle(outcome, uids, now)

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

    def walk(self, *, held: bool) -> Walk:
        """Looks at what is in it now, a part at a time; `held`: also at what is somebody's."""
        return self._entries.walk(held=held)

    def take(self, entries: list[Entry], link: ConsumerLink) -> list[Entry]:
        """Those of these that wait yet are `link`'s, who moves them: nobody is shown them. Gives them."""
        its, taken = self._entries, self._entries.take_back(entries)
        for entry in taken:
            entry.holder = link
            its.unsettled[entry.message.uid] = entry
            its.tell_held(None, entry)
        return taken

    def drop(self, entries: list[Entry]) -> list[Entry]:
        """Drops those of these that wait yet; gives them."""
        taken = self._entries.take_back(entries)
        self._entries.drop(taken, PURGED)
        return taken

    @property
    def next_position(self) -> int:
        """That of the next newcomer: what is here now stands before it."""
        return self._entries.position

    def purge(self, most: int | None = None, before: int | None = None) -> int:
        """Drops what is ready, from the front, `most` at most (None: as goes in one turn); gives the number.

        `before`: what stands there or behind stays.
        """
        its, most = self._entries, turn.AT_ONCE if most is None else most
        entries = its.take_before(its.position if before is None else before, most)
        if entries:
            self.record.dropped(uids_of(entries), PURGED)
        self._entries.forget(entries)
        return len(entries)

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

    def hold_up(self) -> None:
        """Much comes back in parts: nothing is delivered before `go_on`."""
        self._backlog.returning += 1

    def go_on(self, now: int) -> None:
        """All of it is back."""
        self._backlog.returning -= 1
        self.dispatch(now)

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

    def release_held_by(self, holder: object, now: int) -> list[int]:
        """Gives everything that `holder` has unsettled back to its place, as redelivered.

        More than goes in one turn is given to the caller, for `release`, with others' if it takes long to tell them
        apart: nothing is delivered before the last of it.
        """
        uids = self._claims.all_held()
        if len(uids) > turn.SEEN or len(uids := self._claims.release(holder, uids)) > turn.AT_ONCE:
            self._backlog.returning += 1
            return uids
        self.settle(_given_up(holder), uids, now)
        return []

    def release(self, uids: Sequence[int], holder: object, now: int, *, last: bool) -> None:
        """Gives back what `holder` has of these yet; `last`: there is no more."""
        self._backlog.returning -= last
        self.settle(_given_up(holder), self._claims.release(holder, uids), now)
        self.dispatch(now)

    # -------------------------------------------------------------- transactions

    def reserve(self, count: int, size: int) -> bool:
        """Keeps room for messages of a transaction; False when they would overflow."""
        return self._room.reserve(count, size)

    def place(self, count: int) -> int:
        """Keeps a place for messages of a transaction, the next `count` positions: where they will be in the queue."""
        return self._entries.keep_place(count)

    def stage(self, arrival: Arrival, now: int) -> None:
        """Enters for the journal what features keep of messages of a transaction, should it be committed."""
        self._admission.stage(arrival, now)

    def unreserve(self, count: int, size: int) -> None:
        """Gives up what `reserve` kept."""
        self._room.unreserve(count, size)

    def hold(self, uids: Iterable[int], holder: Undecided) -> tuple[list[Entry], list[int]]:
        """Unsettled entries that a transaction settles, and uids of claimed ones that are to come: `holder`'s now."""
        return self._claims.hold(uids, holder)

    def settle_held(self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int, *, staged: bool) -> None:
        """The transaction is complete; `staged`: the journal has their dequeue already."""
        self._settlement.settle_held(outcome, entries, now, staged=staged)

    def moved(self, entries: list[Entry], now: int, *, staged: bool) -> None:
        """The same of what is in another queue now."""
        self._settlement.moved(entries, now, staged=staged)

    def settle_coming(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], holder: Undecided, now: int) -> None:
        """The same for uids that were to come when `hold` was called, whether they have come since or not."""
        self._settlement.settle_coming(outcome, uids, holder, now)

    def let_go(self, uids: Sequence[int], holder: Undecided) -> list[Entry]:
        """The transaction is off, for such uids: gives the entries that have come since, for `unhold`."""
        return self._claims.let_go(uids, holder)

    def unhold(self, entries: list[Entry], holder: object, now: int) -> None:
        """The transaction is off: they are `holder`'s again, or released when there is none, or it is over."""
        for entry in entries:
            entry.holder = holder
        if holder is None or (isinstance(holder, Holder) and holder.over):
            self.settle(_given_up(holder), uids_of(entries), now)

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
        entries = self._entries.clear()
        for window in self._admission.windows():
            window.end(durable=durable)
        if durable:
            self._entries.forget(entries)
        else:
            self._entries.forget_dequeued(entries)
        return count


def _given_up(holder: object) -> pb.Outcome.ValueType:
    """How what somebody had goes back who is there no more."""
    return pb.RESTORE if isinstance(holder, Holder) and holder.moves else pb.ABANDON
