"""From messages to consumers: by priority, in turns, in columns. The hot path of the queue process.

Turns are by message but everything is done by slices: of n messages for k consumers, consumer i gets every k-th from i.
"""

from __future__ import annotations

from itertools import islice, repeat

from services.common.message.weight import weight
from services.queue.machine.arrival import Arrival
from services.queue.machine.consumers import Consumer, Consumers
from services.queue.machine.context import QueueContext
from services.queue.machine.entry import ACQUIRED, Entry
from services.queue.machine.message import Holding
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.ready import Ready
from services.queue.machine.queue_type import AT_ONCE
from services.queue.machine.record import QueueRecord, uids_of


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

    def direct(self, arrival: Arrival) -> int:
        """Delivers as many messages as consumers can take at once; for a queue with nothing available.

        Stops early where it takes a closer look: bytes of credit that may not suffice, settled and unsettled consumers
        in one ring. What is left goes by the list.
        """
        done, count = 0, len(arrival.bodies)
        while done < count and (ring := self._consumers.ring):
            # Of more consumers than messages the others' turn is later: they are not looked at.
            serving = list(islice(ring, count - done))
            end = min(count, done + len(serving) * min([consumer.messages for consumer in serving]))
            if arrival.weight(done, end) > min([consumer.size for consumer in serving]):
                break
            kinds = {consumer.settled for consumer in serving}
            if len(kinds) > 1:
                break
            settled = kinds.pop()
            if settled and arrival.parts is not None:  # the journal has them already
                break
            if self._record.on:
                self._record_direct(serving, arrival, done, end, settled=settled)
            if settled:
                self._direct_columns(serving, arrival, done, end)
            else:
                self._direct_entries(serving, arrival, done, end)
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
        step = len(ring)
        for index, consumer in enumerate(ring[: end - first], first):
            self._hand_over(consumer, arrival, slice(index, end, step))

    def _direct_entries(self, ring: list[Consumer], arrival: Arrival, first: int, end: int) -> None:
        """To be settled: an entry for each, which never sees the list unless it comes back."""
        entries = self.entries(arrival, first, end, ACQUIRED, durable=self._options.durable)
        self.unsettled.update(zip(arrival.uids[first:end], entries, strict=True))
        part = entries[0].part
        if part is not None and part is entries[-1].part:
            self._context.draft.handed_out_up_to(part, entries[-1].position)
        elif self._options.durable:
            self._context.draft.handed_out(entries)
        step = len(ring)
        for index, consumer in enumerate(ring[: end - first], first):
            for entry in entries[index - first :: step]:
                entry.holder = consumer.link
            self._hand_over(consumer, arrival, slice(index, end, step))

    @staticmethod
    def _hand_over(consumer: Consumer, arrival: Arrival, its: slice) -> None:
        """Takes them from its credit."""
        properties, bodies = arrival.properties[its], arrival.bodies[its]
        consumer.messages -= len(bodies)
        carried = weight(properties, bodies)
        consumer.size -= carried
        deliveries = consumer.link.deliveries
        deliveries.add(consumer.handle, False, arrival.uids[its], arrival.facts[its], properties, bodies, carried)

    def entries(self, arrival: Arrival, first: int, end: int, state: int, *, durable: bool) -> list[Entry]:
        """New entries for messages `first` to `end - 1`, enlisted for the journal when both sides are durable."""
        position, count, parts = self.position, end - first, arrival.parts
        if arrival.place is not None:
            position = arrival.place + first
            parts = parts and parts[first:end]
        elif durable:
            parts = arrival.enlist(self._options, first, end, position)
        self.position = max(self.position, position + count)
        messages = arrival.messages(first, end)
        self._context.account.hold(messages, arrival.kept(first, end), self._holding)
        places, expires = range(position, position + count), arrival.expires and arrival.expires[first:end]
        columns = zip(messages, places, expires or repeat(0, count), parts or repeat(None, count), strict=True)
        return [Entry(message, place, time, part, state) for message, place, time, part in columns]

    # -------------------------------------------------------------- from the list

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """Delivers until nothing is available or nobody can take; entries past their time go to `expired`.

        When these are a turn's work it ends as well.
        """
        if self._consumers.browsers:
            self._browse()
        ready, consumers = self._ready, self._consumers
        while ready.count and len(expired) < AT_ONCE and (ring := consumers.ring):
            serving = list(islice(ring, ready.count))
            step = len(serving)
            limit = step * min([consumer.messages for consumer in serving])
            taken = ready.take(limit, min([consumer.size for consumer in serving]), now, expired)
            if not taken:
                continue
            for index, consumer in enumerate(serving):
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
