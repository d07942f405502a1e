"""The entries of a queue: what waits in `ready`, what is `unsettled`, and the accounts that both are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from services.common.ledger.stages import REPLACED
from services.common.topology.slots import SlotId
from services.queue.machine.arrival import Arrival
from services.queue.machine.aside import Aside
from services.queue.machine.burying import letters_of
from services.queue.machine.context import EXPIRED, QueueContext
from services.queue.machine.entry import ACQUIRED, AVAILABLE, BACK_ASIDE, GONE, STANDING_ASIDE, WAITING, Entry
from services.queue.machine.expiring import Expiring
from services.queue.machine.features.acquired import Acquired
from services.queue.machine.features.attempts import Attempts
from services.queue.machine.features.let_go import LetGo
from services.queue.machine.features.retries import Retries
from services.queue.machine.features.sent_on import SentOn
from services.queue.machine.message import Holding
from services.queue.machine.options import RING, QueueOptions
from services.queue.machine.order.ready import CreateReady
from services.queue.machine.record import uids_of
from services.queue.machine.ring import Ring
from services.queue.machine.walk import Walk

if TYPE_CHECKING:
    from services.queue.machine.consumers import Consumer
    from services.queue.machine.delivery.not_for import NotFor
    from services.queue.machine.features.annotated import Annotated


class Entries:
    """Of one queue. `unsettled` are the acquired ones by uid; `position` is that of the next newcomer.

    `journalled`: whether entries may be on disk. Those of a queue that is not durable may be, once they were handed
    over. `on_settled` hears of those that nobody holds any more, where that matters to others; `on_held` of each that
    is somebody's to whom it was not delivered here, and of the consumer whose it was, if that one has come again;
    `on_more`, with the queue's id, that more waits, however it came; `on_gone` that some have gone.
    `aside` is for what may not be delivered yet, in a queue that holds it; `ring` knows what goes, in one that is one;
    `acquired` how often each was somebody's, in one that limits attempts; `attempts` tells the journal of these;
    `sent_on` knows of dead letters that a former owner sent to some of their queues; `annotated` and `not_for` what
    consumers have said of messages, if any has (`modifying.py`).
    """

    __slots__ = (
        "acquired",
        "annotated",
        "aside",
        "attempts",
        "context",
        "expiring",
        "holding",
        "journalled",
        "not_for",
        "on_gone",
        "on_held",
        "on_more",
        "on_settled",
        "options",
        "position",
        "ready",
        "record",
        "ring",
        "sent_on",
        "unsettled",
    )

    def __init__(self, options: QueueOptions, context: QueueContext, create_ready: CreateReady) -> None:
        self.options = options
        self.context = context
        self.record = context.record_of(options)
        self.holding = Holding()
        self.position = 0
        self.journalled = options.durable
        self.unsettled: dict[int, Entry] = {}
        self.on_settled: Callable[[list[Entry]], None] | None = None
        self.on_held: Callable[[Consumer | None, Entry], None] | None = None
        self.on_more: Callable[[SlotId], None] | None = None
        self.on_gone: Callable[[], None] | None = None
        self.ready = create_ready(options, self.unsettled.__contains__)
        self.aside = self._new_aside()
        self.ring = self._new_ring()
        self.acquired = self._new_acquired()
        self.attempts = self._new_attempts()
        self.sent_on = self._new_sent_on()
        self.annotated: Annotated | None = None
        self.not_for: NotFor | None = None
        self.expiring = Expiring(in_order=self.ready.by_arrival and self.aside is None)

    def __iter__(self) -> Iterator[Entry]:
        """What is ready and what is unsettled; to be used up before anything changes."""
        yield from self.ready.view(-1)
        yield from self.aside or ()
        yield from self.unsettled.values()

    @property
    def count(self) -> int:
        """Of those that wait, also for their time."""
        return self.ready.count + (self.aside.count if self.aside else 0)

    @property
    def size(self) -> int:
        """Bytes of their bodies."""
        return self.ready.size + (self.aside.size if self.aside else 0)

    def walk(self, *, held: bool) -> Walk:
        """Looks at what is here now, a part at a time; `held`: also at what is somebody's, first."""
        return Walk(self, list(self.unsettled.values()) if held else [])

    # -------------------------------------------------------------- in

    def adopt(self, options: QueueOptions) -> None:
        """Its policies say something else. Those that are here expire when they would have."""
        if options.ttl_ms != self.options.ttl_ms and (self.count or self.unsettled):
            self.expiring.mixed()
        self.options = options
        if self.aside and options.limited:
            self.aside.ranked(self.ready.rank)
        elif self.aside is None and (aside := self._new_aside()):
            self.aside = aside
            self.expiring.mixed()
        self.acquired = self.acquired or self._new_acquired()
        self.attempts = self.attempts or self._new_attempts()
        self.sent_on = self.sent_on or self._new_sent_on()
        if (self.ring is None) is (options.overflow == RING):
            self.ring = self._new_ring()

    def _new_aside(self) -> Aside | None:
        options, draft = self.options, self.context.draft
        if not options.sets_aside:
            return None
        let_go = LetGo(options.queue_id, draft) if options.durable and options.holds else None
        rank = self.ready.rank if options.limited else None
        return Aside(self.holding, rank, Retries(options.queue_id, draft), let_go)

    def _new_acquired(self) -> Acquired | None:
        options = self.options
        return Acquired(options.queue_id, self.context.draft) if options.delivery_limit is not None else None

    def _new_attempts(self) -> Attempts | None:
        options = self.options
        limits = options.durable and options.delivery_limit is not None
        return Attempts(options.queue_id, self.context.draft) if limits else None

    def _new_sent_on(self) -> SentOn | None:
        options = self.options
        return SentOn(self.context.draft) if options.durable and options.dead_letter_exchange is not None else None

    def _new_ring(self) -> Ring | None:
        if self.options.overflow != RING:
            return None
        return Ring(self.ready.worth, self.walk(held=True) if self.count or self.unsettled else None)

    def ranked(self) -> bool:
        """Whether `pop` knows what is first, as far as it stands aside: looks at more of that until it does."""
        return self.aside is None or self.aside.rank_some()

    def place_of(self, arrival: Arrival) -> int:
        """The position of its first message."""
        return self.position if arrival.place is None else arrival.place

    def keep_place(self, count: int) -> int:
        """The next `count` positions are somebody's; gives the first."""
        position = self.position
        self.position += count
        return position

    def create(self, arrival: Arrival, first: int, end: int, state: int, *, durable: bool) -> list[Entry]:
        """New entries for messages `first` to `end - 1`, enlisted for the journal when both sides are durable."""
        position, count, parts = self.position, end - first, arrival.parts
        if arrival.place is not None:
            position = arrival.place + first
            parts = parts and parts[first:end]
        elif durable:
            parts = arrival.enlist(self.options, first, end, position)
        self.position = max(self.position, position + count)
        messages = arrival.messages(first, end)
        self.context.account.hold(messages, arrival.kept(first, end), self.holding)
        places, expires = range(position, position + count), arrival.expires and arrival.expires[first:end]
        columns = zip(messages, places, expires or repeat(0, count), parts or repeat(None, count), strict=True)
        return [Entry(message, place, time, part, state) for message, place, time, part in columns]

    def append(self, arrival: Arrival, first: int, end: int, now: int) -> list[Entry]:
        """Messages `first` to `end - 1` wait from now on."""
        if self.record.on:
            self.record.enqueued(arrival.span(first, end))
        entries = self.create(arrival, first, end, AVAILABLE, durable=self.options.durable)
        ready = self._past_aside(entries, now)
        if entries[-1].position + 1 < self.position:
            # Its place was kept while its transaction was open, and others have gone past.
            self.ready.put_back(ready)
        elif ready is entries:
            self.ready.extend(entries, sum(map(len, arrival.bodies[first:end])))
        else:
            self.ready.extend(ready, sum(len(entry.message.body) for entry in ready))
        self._wait(entries)
        return entries

    def put_back(self, entries: list[Entry]) -> None:
        """Acquired ones wait again, at their places."""
        self.ready.put_back(entries)
        self._wait(entries)

    def recover(self, entries: list[Entry], now: int) -> None:
        """As Queue.recover says."""
        if self.annotated is not None:
            self.annotated.recovered(entries)
        self.holding.take(entries)
        self.position = entries[-1].position + 1
        self.journalled = True
        for entry in entries:
            if entry.state == ACQUIRED:
                self.unsettled[entry.message.uid] = entry
                self.tell_held(None, entry)
        ready = [entry for entry in entries if entry.state == AVAILABLE]
        if self.aside is not None:
            ready = self._past_aside(self.aside.keep_back(ready, now), now)
            self.context.expect(self.options.queue_id)
        self.ready.extend(ready, sum(len(entry.message.body) for entry in ready))
        self.ring = None
        self._wait(entries)
        self.ring = self._new_ring()  # which looks at them in parts

    def _past_aside(self, entries: list[Entry], now: int) -> list[Entry]:
        """Those that need not stand aside."""
        if self.aside is None or not self.options.holds:
            return entries
        ready = self.aside.keep(entries, now)
        if self.aside.count:
            self.context.expect(self.options.queue_id)
        return ready

    def set_aside(self, early: list[tuple[int, Entry]]) -> None:
        """Acquired ones wait again, until these times and then at their places."""
        if self.aside is not None:
            self.aside.set(early, BACK_ASIDE)
            self.context.expect(self.options.queue_id)
            self._wait([entry for _, entry in early])

    def release(self, now: int) -> None:
        """What stands aside and may be delivered by now has its place in the list."""
        if self.aside and (due := self.aside.release(now)):
            self.ready.put_back(due)
            if self.ring is not None and self.ring.counting:  # who looks at them in parts may have been here before
                self.ring.came(due)
            self._drop_displaced()

    def _wait(self, entries: list[Entry]) -> None:
        if self.ring is not None:
            self.ring.came(entries)
        self._drop_displaced()
        if self.on_more:
            self.on_more(self.options.queue_id)
        if self.expiring.some:
            self.expiring.add(entries, self.count, self.holding.size)

    def _drop_displaced(self) -> None:
        """What is displaced is gone, as what was settled: no dead letter."""
        if self.ready.displaces and (displaced := self.ready.take_displaced()):
            self.record.dropped(uids_of(displaced), REPLACED)
            self.forget(displaced)

    # -------------------------------------------------------------- out

    def tell_held(self, consumer: Consumer | None, entry: Entry) -> None:
        """It is its holder's, who has not been given it by a delivery; `consumer` as `on_held` hears it."""
        if self.on_held:
            self.on_held(consumer, entry)

    def take_unsettled(self, uids: Iterable[int]) -> list[Entry]:
        """Those of these that somebody holds: nobody's from now on."""
        pop = self.unsettled.pop
        entries = [entry for uid in uids if (entry := pop(uid, None)) is not None]
        if self.on_settled:
            self.on_settled(entries)
        return entries

    def expire_at(self) -> tuple[int, int]:
        """When the first in the list does (Unix ms), and the first of those that may stand anywhere; 0 for none."""
        head, more = self.ready.peek(), self.expiring.tidy(self.count, self.holding.size)
        return head.expires if head else 0, 1 if more else self.expiring.next

    def overdue(self, now: int) -> list[Entry]:
        """Takes out what is past its time, wherever it stands, as much as goes in one turn."""
        return [self._withdraw(entry) for entry in self.expiring.due(now)]

    def _withdraw(self, entry: Entry) -> Entry:
        self.expiring.disown(entry)
        return (
            self.aside.withdraw(entry) if self.aside and entry.state in STANDING_ASIDE else self.ready.withdraw(entry)
        )

    def acquire(self, uids: set[int]) -> list[Entry]:
        """Takes out those of these messages that wait, wherever they stand, and though it is not their time yet."""
        found = self.ready.acquire(uids)
        if self.aside and (left := uids.difference(uids_of(found))):
            found += self.aside.acquire(left)
        return found

    def take_back(self, entries: list[Entry]) -> list[Entry]:
        """Takes out those of these that wait yet."""
        taken = [self._withdraw(entry) for entry in entries if entry.state in WAITING]
        if self.ring is not None:  # what goes out of the middle of a list is another object from then on
            self.ring.came(taken)
        return taken

    def pop(self) -> Entry | None:
        """Takes out the first in the order, though it stands aside: of a queue that may have too much."""
        if self.aside is None or (waits := self.aside.oldest()) is None:
            return self.ready.pop()
        first, rank = self.ready.peek(), self.ready.rank
        return self.aside.withdraw(waits) if first is None or rank(waits) < rank(first) else self.ready.pop()

    def handed_out(self, entries: list[Entry]) -> None:
        """Somebody has them, and has to settle them: the next owner is to know."""
        if self.ring is not None and self.ring.counting:  # who looks at what waits does not come by them any more
            self.ring.came(entries)
        if self.journalled:
            self.context.draft.handed_out(entries)

    def settled(self, entries: list[Entry], uids: Sequence[int] | None = None) -> None:
        """These were accepted; `uids` are theirs, for who has them at hand."""
        if self.record.on and entries:
            self.record.settled(uids_of(entries) if uids is None else uids)
        self.forget(entries)

    def take_out(self, entry: Entry) -> Entry:
        """One that waits, or that somebody holds: nobody's from now on."""
        if held := self.take_unsettled([entry.message.uid]):
            return held[0]
        return self._withdraw(entry)

    def forget(self, entries: list[Entry]) -> None:
        """They are done with: gives their memory back, and dequeues those that are on disk."""
        self._left(entries)
        self.context.forget(entries, self.holding, durable=self.journalled)

    def _left(self, entries: list[Entry]) -> None:
        if self.on_gone is not None:
            self.on_gone()
        if self.ring is not None:
            self.ring.left(entries)
        if self.acquired is not None:
            self.acquired.left(entries)
        if self.attempts is not None:
            self.attempts.left(entries)
        if self.sent_on is not None:
            self.sent_on.left(entries)
        if self.annotated is not None:
            self.annotated.left(entries)
        if self.not_for is not None:
            self.not_for.left(entries)
        if self.aside is not None:
            self.aside.gone(entries)

    def forget_dequeued(self, entries: list[Entry]) -> None:
        """The same of those of which the journal has that already."""
        self._left(entries)
        self.context.forget(entries, self.holding, durable=False)

    def drop(self, entries: list[Entry], reason: str) -> None:
        """Nobody will get them."""
        if self.record.on and entries:
            self.record.dropped(uids_of(entries), reason)
        self.forget(entries)

    def discard(self, entries: list[Entry], reason: str, now: int) -> None:
        """Dead-letters entries that are out of the list already, or drops them."""
        for entry in entries:
            entry.state = GONE
        options = self.options
        if options.dead_letter_exchange is None or (reason == EXPIRED and options.drops_expired):
            self.drop(entries, reason)
        else:
            letters = letters_of(self, entries, reason, now)
            self._left(entries)
            self.context.bury(letters)

    def take_before(self, position: int, most: int) -> list[Entry]:
        """Takes out what waits and stands before a position, so much at most; what stands aside comes last."""
        if most >= self.count and position >= self.position:
            return self.clear_waiting()
        taken = self.ready.take_before(position, most)
        return taken + self.aside.take_before(position, most - len(taken)) if self.aside else taken

    def clear_waiting(self) -> list[Entry]:
        """Takes out all that waits."""
        return self.ready.clear() + (self.aside.clear() if self.aside else [])

    def clear(self) -> list[Entry]:
        """Takes all of it out."""
        entries = self.clear_waiting()
        entries += self.unsettled.values()
        self.unsettled.clear()
        return entries
