"""From messages to consumers: by priority, in turns, in columns. The hot path of the queue process.

Turns are by message but everything is done by slices: of n messages for k consumers, consumer i gets every k-th from i.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.common.message.weight import weight
from services.queue.arrival import Arrival
from services.queue.consumers import Consumer, Consumers
from services.queue.context import QueueContext
from services.queue.entry import ACQUIRED, Entry, JournalPart
from services.queue.message import Holding
from services.queue.options import QueueOptions
from services.queue.ready import Ready
from services.queue.record import QueueRecord, uids_of


class Dispatcher:
    """Moves messages of one queue to its consumers; `unsettled` are the acquired entries by uid."""

    __slots__ = (
        "_consumers", "_context", "_holding", "_options", "_ready", "_record", "journalled", "position", "unsettled",
    )  # fmt: skip

    def __init__(
        self,
        options: QueueOptions,
        context: QueueContext,
        ready: Ready,
        consumers: Consumers,
        record: QueueRecord,
        holding: Holding,
    ) -> None:
        self._options = options
        self._record = record
        self._context = context
        self._ready = ready
        self._consumers = consumers
        self._holding = holding
        self.position = 0  # of the next entry
        self.journalled = options.durable  # whether entries may be on disk; of others once they were handed over
        self.unsettled: dict[int, Entry] = {}

    # -------------------------------------------------------------- from the publisher, past the list

    def direct(self, arrival: Arrival, expires: int) -> int:
        """Delivers as many messages of a run as consumers can take at once; for a queue with nothing available.

        Stops early where it takes a closer look: bytes of credit that may not suffice, settled and unsettled consumers
        in one ring. What is left goes by the list.
        """
        done, count = 0, len(arrival.bodies)
        while done < count and (ring := self._consumers.ring):
            end = min(count, done + len(ring) * min([consumer.messages for consumer in ring]))
            if arrival.weight(done, end) > min([consumer.size for consumer in ring]):
                break
            kinds = {consumer.settled for consumer in ring}
            if len(kinds) > 1:
                break
            settled = kinds.pop()
            if settled and arrival.content.staged:
                break
            if self._record.on:
                self._record_direct(ring, arrival, done, end, settled=settled)
            if settled:
                self._direct_columns(ring, arrival, done, end)
            else:
                self._direct_entries(ring, arrival, done, end, expires)
            self._consumers.turn(ring, end - done)
            done = end
        self._context.traffic += done
        return done

    def _record_direct(self, ring: list[Consumer], arrival: Arrival, first: int, end: int, *, settled: bool) -> None:
        record, step = self._record, len(ring)
        record.enqueued(arrival.span(first, end))
        for index, consumer in enumerate(ring[: end - first], first):
            uids = arrival.span(index, end - (end - 1 - index) % step, step)
            record.delivered(consumer.places[0], uids, consumer)
        if settled:
            record.settled(arrival.span(first, end))

    def _direct_columns(self, ring: list[Consumer], arrival: Arrival, first: int, end: int) -> None:
        """Settled by being sent: nothing is kept, nothing need be on disk."""
        step, run = len(ring), arrival.run
        for index, consumer in enumerate(ring, first):
            bodies = arrival.bodies[index:end:step]
            if not bodies:
                break
            properties = arrival.properties[index:end:step] if arrival.shared is None else arrival.shared
            uids = arrival.uids[index:end:step]
            consumer.messages -= len(bodies)
            consumer.size -= _weight(properties, bodies)
            consumer.link.deliveries.add(consumer.handle, run, False, uids, properties, bodies)

    def _direct_entries(self, ring: list[Consumer], arrival: Arrival, first: int, end: int, expires: int) -> None:
        """To be settled: an entry for each, which never sees the list unless it comes back."""
        entries = self.entries(arrival, first, end, expires, ACQUIRED, durable=self._options.durable)
        self.unsettled.update(zip(arrival.uids[first:end], entries, strict=True))
        step, run = len(ring), arrival.run
        if (part := entries[0].part) is not None:
            self._context.draft.handed_out_up_to(part, entries[-1].position)
        for index, consumer in enumerate(ring, first):
            mine = entries[index - first :: step]
            if not mine:
                break
            holder = consumer.link
            for entry in mine:
                entry.holder = holder
            bodies = arrival.bodies[index:end:step]
            properties = arrival.properties[index:end:step] if arrival.shared is None else arrival.shared
            consumer.messages -= len(bodies)
            consumer.size -= _weight(properties, bodies)
            holder.deliveries.add(consumer.handle, run, False, arrival.uids[index:end:step], properties, bodies)

    def entries(
        self, arrival: Arrival, first: int, end: int, expires: int, state: int, *, durable: bool
    ) -> list[Entry]:
        """New entries for messages `first` to `end - 1`, enlisted for the journal when both sides are durable."""
        position, count = self.position, end - first
        part: JournalPart | None = None
        options, content = self._options, arrival.content
        if durable and arrival.run.persistent:
            part, position = content.enlist(options.partition, options.queue_id, arrival.first, first, count, position)
        elif content.places and (place := content.places.get((options.queue_id, arrival.first))) is not None:
            position = place + first
        self.position = max(self.position, position + count)
        messages = arrival.messages(first, end)
        self._context.account.hold(messages, arrival.weight(first, end), self._holding)
        places = range(position, position + count)
        return [Entry(m, place, expires, part, state) for m, place in zip(messages, places, strict=True)]

    # -------------------------------------------------------------- from the list

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """Delivers until nothing is available or nobody can take; entries past their time go to `expired`."""
        if self._consumers.browsers:
            self._browse()
        ready, consumers = self._ready, self._consumers
        while ready.count and (ring := consumers.ring):
            step = len(ring)
            limit = step * min([consumer.messages for consumer in ring])
            taken = ready.take(limit, min([consumer.size for consumer in ring]), now, expired)
            if not taken:
                continue
            for index, consumer in enumerate(ring):
                if mine := taken if step == 1 else taken[index::step]:
                    self._hand_out(consumer, mine)
            consumers.turn(ring, len(taken))
            self._context.traffic += len(taken)

    def _hand_out(self, consumer: Consumer, entries: list[Entry]) -> None:
        again = self._send(consumer, entries)
        durable = self.journalled
        uids = uids_of(entries)
        if self._record.on:
            self._record_delivered(consumer, entries, uids, again=again)
        if consumer.settled:
            if self._record.on:
                self._record.settled(uids)
            self._context.forget(entries, self._holding, durable=durable)
            return
        holder = consumer.link
        for entry in entries:
            entry.holder = holder
        self.unsettled.update(zip(uids, entries, strict=True))
        if durable:
            self._context.draft.handed_out(entries)

    def _record_delivered(self, consumer: Consumer, entries: list[Entry], uids: list[int], *, again: bool) -> None:
        first, other = consumer.places
        if not again:
            self._record.delivered(first, uids, consumer)
            return
        self._record.delivered(other, uids_of(entry for entry in entries if entry.attempts), consumer)
        if new := uids_of(entry for entry in entries if not entry.attempts):
            self._record.delivered(first, new, consumer)

    def _browse(self) -> None:
        for browser in self._consumers.browsers:
            if not browser.ready:
                continue
            seen: list[Entry] = []
            size = browser.size
            for entry in self._ready.view(browser.seen):
                if len(seen) == browser.messages or size <= 0:
                    break
                seen.append(entry)
                size -= entry.message.weight
            if seen:
                browser.seen = seen[-1].position
                again = self._send(browser, seen)
                if self._record.on:
                    self._record_delivered(browser, seen, uids_of(seen), again=again)

    @staticmethod
    def _send(consumer: Consumer, entries: list[Entry]) -> bool:
        """Takes them from its credit; True when some were delivered before."""
        again, spent = consumer.link.deliveries.add_entries(consumer.handle, entries)
        consumer.messages -= len(entries)
        consumer.size -= spent
        return again


def _weight(properties: Sequence[bytes] | bytes, bodies: Sequence[bytes]) -> int:
    """Of deliveries with properties of their own, or one value for all: each of them is written to the consumer."""
    if isinstance(properties, bytes):
        return sum(map(len, bodies)) + len(properties) * len(bodies)
    return weight(properties, bodies)
