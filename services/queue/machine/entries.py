"""The entries of a queue: what waits in `ready`, what is `unsettled`, and the accounts that both are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from services.common.ledger.stages import REPLACED
from services.queue.machine.arrival import Arrival
from services.queue.machine.context import DeadLetter, QueueContext
from services.queue.machine.entry import ACQUIRED, AVAILABLE, GONE, Entry
from services.queue.machine.message import Holding
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.ready import CreateReady
from services.queue.machine.record import uids_of

if TYPE_CHECKING:
    from services.queue.machine.consumers import Consumer


class Entries:
    """Of one queue. `unsettled` are the acquired ones by uid; `position` is that of the next newcomer.

    `journalled`: whether entries may be on disk. Those of a queue that is not durable may be, once they were handed
    over. `on_settled` hears of those that nobody holds any more, where that matters to others; `on_held` of each that
    is somebody's to whom it was not delivered here, and of the consumer whose it was, if that one has come again.
    """

    __slots__ = (
        "context",
        "holding",
        "journalled",
        "on_held",
        "on_settled",
        "options",
        "position",
        "ready",
        "record",
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
        self.ready = create_ready(options, self.unsettled.__contains__)

    def __iter__(self) -> Iterator[Entry]:
        """What is ready and what is unsettled; to be used up before anything changes."""
        yield from self.ready.view(-1)
        yield from self.unsettled.values()

    # -------------------------------------------------------------- in

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

    def append(self, arrival: Arrival, first: int, end: int) -> None:
        """Messages `first` to `end - 1` wait from now on."""
        if self.record.on:
            self.record.enqueued(arrival.span(first, end))
        entries = self.create(arrival, first, end, AVAILABLE, durable=self.options.durable)
        if entries[-1].position + 1 < self.position:
            # Its place was kept while its transaction was open, and others have gone past.
            self.ready.put_back(entries)
        else:
            self.ready.extend(entries, sum(map(len, arrival.bodies[first:end])))
        self._drop_displaced()

    def put_back(self, entries: list[Entry]) -> None:
        """Acquired ones wait again, at their places."""
        self.ready.put_back(entries)
        self._drop_displaced()

    def recover(self, entries: list[Entry]) -> None:
        """As Queue.recover says."""
        self.holding.take(entries)
        self.position = entries[-1].position + 1
        self.journalled = True
        for entry in entries:
            if entry.state == ACQUIRED:
                self.unsettled[entry.message.uid] = entry
                self.tell_held(None, entry)
        ready = [entry for entry in entries if entry.state == AVAILABLE]
        self.ready.extend(ready, sum(len(entry.message.body) for entry in ready))
        self._drop_displaced()

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

    def handed_out(self, entries: list[Entry]) -> None:
        """Somebody has them, and has to settle them: the next owner is to know."""
        if self.journalled:
            self.context.draft.handed_out(entries)

    def settled(self, entries: list[Entry], uids: Sequence[int] | None = None) -> None:
        """These were accepted; `uids` are theirs, for who has them at hand."""
        if self.record.on and entries:
            self.record.settled(uids_of(entries) if uids is None else uids)
        self.forget(entries)

    def forget(self, entries: list[Entry]) -> None:
        """They are done with: gives their memory back, and dequeues those that are on disk."""
        self.context.forget(entries, self.holding, durable=self.journalled)

    def forget_dequeued(self, entries: list[Entry]) -> None:
        """The same of those of which the journal has that already."""
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
        if self.options.dead_letter_exchange is None:
            self.drop(entries, reason)
        else:
            self.context.bury([DeadLetter(self.options, entry, reason, now, self.holding) for entry in entries])

    def clear(self) -> list[Entry]:
        """Takes all of it out."""
        entries = self.ready.clear()
        entries += self.unsettled.values()
        self.unsettled.clear()
        return entries
