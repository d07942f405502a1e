"""A queue in the order of arrival: first in, first out, and back to its place what was requeued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from services.common.ledger.stages import ACCEPTED, CONSUMER_GONE, NO_CONSUMERS, NOT_SENT, PURGED, RELEASED
from services.queue.machine.arrival import Arrival
from services.queue.machine.claims import FINAL, Claims
from services.queue.machine.consumers import Consumer, Consumers, Link
from services.queue.machine.context import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED, DeadLetter, QueueContext
from services.queue.machine.delivery.dispatch import Dispatcher
from services.queue.machine.delivery.single_active import SingleActive
from services.queue.machine.entry import ACQUIRED, AVAILABLE, GONE, Entry, Holder, Undecided
from services.queue.machine.message import Holding
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.entry_list import EntryList
from services.queue.machine.order.ready import Ready, overdue, too_much
from services.queue.machine.overflow import OverflowPolicy
from services.queue.machine.queue_type import AT_ONCE, Refused
from services.queue.machine.record import uids_of
from services.queue.machine.room import Room
from services.queue.machine.use import Use
from services.rpc import queue_pb2 as pb

_BACK = {pb.RELEASE: RELEASED, pb.ABANDON: CONSUMER_GONE, pb.RESTORE: NOT_SENT}


class StandardQueue:
    """See services.queue.machine.queue_type.Queue."""

    def __init__(self, options: QueueOptions, context: QueueContext, policy: OverflowPolicy, now: int) -> None:
        self.options = options
        self.record = context.record_of(options)
        self.consumers = Consumers(SingleActive(context.epoch) if options.single_active else None)
        self.holding = Holding()
        self._context = context
        self._policy = policy
        self._ready = self.create_ready()
        self._dispatcher = Dispatcher(options, context, self._ready, self.consumers, self.record, self.holding)
        self.unsettled = self._dispatcher.unsettled
        self._claims = Claims(self._ready, self.unsettled, self.record, context)
        self._may_expire = False
        self._behind = False  # with what is past its time: more than a turn's work, and the clock does the rest
        self._returning = 0  # holders of so much that it comes back in turns: what is behind it waits for all of it
        self.use = Use(options, self.consumers, now)
        self._room = Room(options, policy, self._ready)
        if options.unused_ms is not None:
            context.expect(options.queue_id)

    def create_ready(self) -> Ready:
        """What the available entries are kept in."""
        return EntryList()

    @property
    def ready_count(self) -> int:
        return self._ready.count

    # -------------------------------------------------------------- messages

    def publish(self, arrival: Arrival, now: int, *, reserved: bool = False) -> list[Refused]:
        if reserved:
            self.unreserve(len(arrival), sum(map(len, arrival.bodies)))
        self._context.traffic += len(arrival)
        if arrival.expire_by(self.options.ttl_ms):
            self._expects_expiry()
        if self._claims and self._claims.among(arrival.uids, now):
            return self._publish_claimed(arrival, now)
        done = 0 if self._ready.count or self._returning else self._pass_by(arrival)
        if done == len(arrival):
            return []
        if arrival.immediate:
            return self._immediate(arrival, done, now)
        return self._store(arrival, done, now, reserved=reserved)

    def _pass_by(self, arrival: Arrival) -> int:
        """Delivers what consumers can take at once, past the list; gives how many."""
        return self._dispatcher.direct(arrival)

    def _publish_claimed(self, arrival: Arrival, now: int) -> list[Refused]:
        """Some of it clients have had already; a former owner took all of it, so that it is not refused now."""
        self._append(arrival, 0, len(arrival))
        entries, outcomes = self._claims.arrived(arrival.uids)
        if self._dispatcher.journalled:
            self._context.draft.handed_out(entries)
        for uid, outcome in outcomes.items():
            self.settle(outcome, [uid], now)
        self.dispatch(now)
        self._trim(now)
        return []

    def _expects_expiry(self) -> None:
        self._may_expire = True
        self._context.expect(self.options.queue_id)

    def _immediate(self, arrival: Arrival, first: int, now: int) -> list[Refused]:
        """In no list but for the moment until a consumer has it."""
        end = min(len(arrival), first + self.consumers.capacity()) if not self._ready.count and self._serves else first
        if end > first:
            self._append(arrival, first, end)
            self.dispatch(now)
        if end == len(arrival):
            return []
        self.record.dropped(arrival.span(end, len(arrival)), NO_CONSUMERS)
        return [(end, len(arrival) - end, pb.NO_CONSUMERS)]

    def _store(self, arrival: Arrival, first: int, now: int, *, reserved: bool) -> list[Refused]:
        end = len(arrival)
        while first < end:
            last = self._at_once(first, end)
            admitted = last - first if reserved else self._admitted(arrival.bodies[first:last])
            if admitted:
                self._append(arrival, first, first + admitted)
                self.dispatch(now)
                self._trim(now)
            first += admitted
            if first < last:
                return self._refuse(arrival, first, end, now)
        return []

    def _at_once(self, first: int, end: int) -> int:
        """Consumers that can take keep a queue from being full: then no more comes in at a time than fits."""
        if not self.options.limited or not self._serves:
            return end
        by_count = self.options.max_bytes is None and self.options.max_length
        return min(end, first + (by_count or 1))

    def _admitted(self, bodies: Sequence[bytes]) -> int:
        if not self.options.limited:
            return len(bodies)
        if self._serves:
            return len(bodies)  # at least one leaves again at once
        return self._room.admits([len(body) for body in bodies])

    @property
    def _serves(self) -> bool:
        """Whether something that is ready would leave at once."""
        return not self._behind and not self._returning and bool(self.consumers.ring)

    def _append(self, arrival: Arrival, first: int, end: int) -> None:
        if self.record.on:
            self.record.enqueued(arrival.span(first, end))
        entries = self._dispatcher.entries(arrival, first, end, AVAILABLE, durable=self.options.durable)
        if entries[-1].position + 1 < self._dispatcher.position:
            # Its place was kept while its transaction was open, and others have gone past.
            self._ready.put_back(entries)
        else:
            self._ready.extend(entries, sum(map(len, arrival.bodies[first:end])))

    def _refuse(self, arrival: Arrival, first: int, end: int, now: int) -> list[Refused]:
        if self._policy.dead_letters_refused and self.options.dead_letter_exchange is not None:
            self.discard(self._dispatcher.entries(arrival, first, end, GONE, durable=False), MAXLEN, now)
        else:
            self.record.dropped(arrival.span(first, end), MAXLEN)
        return [(first, end - first, pb.OVERFLOW)]

    def _trim(self, now: int) -> None:
        """Drops from the head what is too much."""
        if self.options.limited and self._policy.drops_head and (dropped := too_much(self._ready, self.options)):
            self.discard(dropped, MAXLEN, now)

    def recover(self, entries: list[Entry]) -> None:
        if any(entry.expires for entry in entries):
            self._expects_expiry()
        self.holding.take(entries)
        self._dispatcher.position = entries[-1].position + 1
        self._dispatcher.journalled = True
        self.unsettled.update((entry.message.uid, entry) for entry in entries if entry.state == ACQUIRED)
        ready = [entry for entry in entries if entry.state == AVAILABLE]
        self._ready.extend(ready, sum(len(entry.message.body) for entry in ready))

    def entries(self) -> Iterator[Entry]:
        yield from self._ready.view(-1)
        yield from self.unsettled.values()

    def settle(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], now: int) -> None:
        if self._claims:
            self._claims.settled(outcome, uids)
        if outcome == pb.ABANDON:
            uids = self._claims.abandon(uids)
        pop = self.unsettled.pop
        entries = [entry for uid in uids if (entry := pop(uid, None)) is not None]
        if outcome == pb.ACCEPT:
            if self.record.on and entries:
                self.record.settled(uids if len(entries) == len(uids) else uids_of(entries))
            self._context.forget(entries, self.holding, durable=self._dispatcher.journalled)
        elif entries:
            self._come_back(outcome, entries, now)

    def _come_back(self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int) -> None:
        if outcome == pb.REJECT:
            if self.record.on:
                self.record.settled(uids_of(entries), REJECTED)
            self.discard(entries, REJECTED, now)
            return
        tried = entries if outcome == pb.RESTORE else self._attempted(entries, now)
        entries = self._claims.inherited(tried)
        if self.record.on and entries:
            self.record.requeued(uids_of(entries), _BACK[outcome])
        self._ready.put_back(entries)
        self.dispatch(now)
        self._trim(now)

    def _attempted(self, entries: list[Entry], now: int) -> list[Entry]:
        """Counts the attempt; gives those that may be tried again."""
        for entry in entries:
            entry.attempts += 1
        limit = self.options.delivery_limit
        if limit is None:
            return entries
        if spent := [entry for entry in entries if entry.attempts > limit]:
            self.discard(spent, DELIVERY_LIMIT, now)
        return [entry for entry in entries if entry.attempts <= limit]

    def get(self, link: Link, now: int, *, settled: bool) -> Entry | None:
        self.use.touch(now)
        if self.lags(now) or (entry := self._ready.pop()) is None:
            return None
        if self.record.on:
            self.record.delivered(self.record.places_for("", "")[entry.attempts > 0], [entry.message.uid])
        if settled:
            self.record.settled([entry.message.uid])
            self._context.forget([entry], self.holding, durable=self._dispatcher.journalled)
            return entry
        entry.holder = link
        self.unsettled[entry.message.uid] = entry
        if self._dispatcher.journalled:
            self._context.draft.handed_out([entry])
        return entry

    def purge(self, most: int = AT_ONCE) -> int:
        ready = self._ready
        entries = ready.clear() if most >= ready.count else [entry for _ in range(most) if (entry := ready.pop())]
        if entries:
            self.record.dropped(uids_of(entries), PURGED)
        self._context.forget(entries, self.holding, durable=self._dispatcher.journalled)
        return len(entries)

    def discard(self, entries: list[Entry], reason: str, now: int) -> None:
        for entry in entries:
            entry.state = GONE
        if self.options.dead_letter_exchange is None:
            if self.record.on:
                self.record.dropped(uids_of(entries), reason)
            self._context.forget(entries, self.holding, durable=self._dispatcher.journalled)
        else:
            self._context.bury([DeadLetter(self.options, entry, reason, now, self.holding) for entry in entries])

    # -------------------------------------------------------------- consumers

    def attach(self, consumer: Consumer, held: Sequence[int], now: int, *, again: bool) -> pb.Reason.ValueType:
        if not again and self.consumers.refuses(exclusive=consumer.exclusive):
            return pb.EXCLUSIVE_USE
        self.use.attached(now)
        self.consumers.add(consumer)
        if self.record.on:
            consumer.places = self.record.places_for(consumer.connection, consumer.tag)
        if held:
            self.claim(held, consumer.link, now)
        return pb.NONE

    def claim(self, held: Sequence[int], link: Link, now: int) -> None:
        entries = self._claims.claim(held, link, now)
        if entries and self._dispatcher.journalled:
            self._context.draft.handed_out(entries)

    def not_others(self, uids: Iterable[int], holder: Holder) -> list[int]:
        return self._claims.not_others(uids, holder)

    def detach(self, consumer: Consumer, now: int) -> bool:
        was_active = self.consumers.active is consumer
        self.consumers.remove(consumer)
        if was_active:
            self.dispatch(now)
        return self.use.detached(now)

    def had_consumers(self, now: int) -> None:
        self.use.before(now)
        self._context.expect(self.options.queue_id)

    def credit(self, consumer: Consumer, messages: int, size: int, now: int) -> None:
        consumer.messages += messages
        consumer.size += size
        self.consumers.refresh(consumer)
        if self._ready.count:
            self.dispatch(now)

    def lags(self, now: int) -> bool:
        if self._may_expire and not self._behind:
            self._give_up(now)
        return self._behind or self._returning > 0

    def dispatch(self, now: int) -> None:
        if self.lags(now):
            return
        expired: list[Entry] = []
        self._dispatcher.from_list(now, expired)
        self._past(expired, now)

    def release_held_by(self, holder: object, now: int) -> list[int]:
        uids = self._claims.release(holder)
        if len(uids) > AT_ONCE:
            self._returning += 1
            return uids
        self.settle(pb.ABANDON, uids, now)
        return []

    def release(self, uids: Sequence[int], holder: object, now: int, *, last: bool) -> None:
        self._returning -= last
        self.settle(pb.ABANDON, self._claims.held_by(holder, uids), now)
        self.dispatch(now)

    # -------------------------------------------------------------- transactions

    def reserve(self, count: int, size: int) -> bool:
        return self._room.reserve(count, size)

    def place(self, count: int) -> int:
        position = self._dispatcher.position
        self._dispatcher.position += count
        return position

    def unreserve(self, count: int, size: int) -> None:
        self._room.unreserve(count, size)

    def hold(self, uids: Iterable[int], holder: Undecided) -> tuple[list[Entry], list[int]]:
        return self._claims.hold(uids, holder)

    def settle_held(self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int, *, staged: bool) -> None:
        # One that was settled otherwise meanwhile, because its gateway has told that again, is done with.
        entries = [entry for entry in entries if self.unsettled.pop(entry.message.uid, None) is not None]
        if staged:
            self._settled_on_disk(outcome, entries)
        elif outcome == pb.ACCEPT:
            if self.record.on and entries:
                self.record.settled(uids_of(entries))
            self._context.forget(entries, self.holding, durable=self._dispatcher.journalled)
        elif entries:
            self._come_back(outcome, entries, now)

    def settle_coming(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], holder: Undecided, now: int) -> None:
        self.settle(outcome, uids if outcome in FINAL else self._claims.still(uids, holder), now)

    def _settled_on_disk(self, outcome: pb.Outcome.ValueType, entries: list[Entry]) -> None:
        """The journal has their dequeue: accepted, or rejected where nobody wants dead letters."""
        if self.record.on and entries:
            uids = uids_of(entries)
            self.record.settled(uids, ACCEPTED if outcome == pb.ACCEPT else REJECTED)
            if outcome == pb.REJECT:
                self.record.dropped(uids, REJECTED)
        self._context.forget(entries, self.holding, durable=False)

    def unhold(self, entries: list[Entry], holder: object, now: int) -> None:
        for entry in entries:
            entry.holder = holder
        if holder is None:
            self.settle(pb.ABANDON, uids_of(entries), now)

    def let_go(self, uids: Sequence[int], holder: Undecided) -> list[Entry]:
        return self._claims.let_go(uids, holder)

    # -------------------------------------------------------------- life

    def expire(self, now: int) -> None:
        self._behind = False
        self._give_up(now)

    def _give_up(self, now: int) -> None:
        self._past(overdue(self._ready, now), now)

    def _past(self, expired: list[Entry], now: int) -> None:
        if expired:
            if self.record.on:
                self.record.expired(uids_of(expired))
            self.discard(expired, EXPIRED, now)
        if len(expired) >= AT_ONCE and self._ready.count:
            self._behind = True
            self._context.expect(self.options.queue_id)

    def deadline(self) -> int:
        times = self.use.deadlines()
        if self._behind:
            times.append(1)
        if self._may_expire and (head := self._ready.peek()) is not None and head.expires:
            times.append(head.expires)
        return min(times, default=0)

    def end(self, *, durable: bool) -> int:
        entries = self._ready.clear()
        count = len(entries)
        entries += self.unsettled.values()
        self.unsettled.clear()
        self._context.forget(entries, self.holding, durable=durable and self._dispatcher.journalled)
        return count
