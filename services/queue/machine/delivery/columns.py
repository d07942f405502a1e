"""From messages to consumers that may all have any: by priority, in turns, in columns. The queue process's hot path.

Turns are by message but everything is done by slices: of n messages for k consumers, consumer i gets every k-th from i.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from services.common.message.weight import weight
from services.queue.machine import parcels, turn
from services.queue.machine.arrival import Arrival
from services.queue.machine.consumers import Consumer, Consumers
from services.queue.machine.delivery.sending import Sending
from services.queue.machine.entries import Entries
from services.queue.machine.entry import ACQUIRED, Entry
from services.queue.machine.order.parcel import Parcel


class ColumnDelivery:
    """Moves messages of one queue to its consumers: `direct` and `from_list` of Delivery."""

    __slots__ = ("_consumers", "_entries", "_sending")

    def __init__(self, entries: Entries, consumers: Consumers) -> None:
        self._entries = entries
        self._consumers = consumers
        self._sending = Sending(entries)

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
            settled, limit, size = serving[0].settled, serving[0].messages, serving[0].size
            if len(serving) > 1:
                limit = len(serving) * min([consumer.messages for consumer in serving])
                size = min([consumer.size for consumer in serving])
                if len({consumer.settled for consumer in serving}) > 1:
                    break
            end = min(count, done + limit)
            if arrival.weight(done, end) > size:
                break
            if settled and arrival.parts is not None:  # the journal has them already
                break
            if self._entries.record.on:
                self._record_direct(serving, arrival, done, end, settled=settled)
            if settled:
                self._direct_columns(serving, arrival, done, end)
            else:
                self._direct_entries(serving, arrival, done, end)
            self._consumers.turn(ring, end - done)
            done = end
        self._entries.context.traffic += done
        return done

    def _record_direct(self, ring: list[Consumer], arrival: Arrival, first: int, end: int, *, settled: bool) -> None:
        self._entries.record.enqueued(uids := arrival.span(first, end))
        self._record_delivered(ring, uids, settled=settled)

    def _record_delivered(self, ring: list[Consumer], uids: Sequence[int], *, settled: bool) -> None:
        record, step = self._entries.record, len(ring)
        for index, consumer in enumerate(ring[: len(uids)]):
            record.delivered(consumer.places[0], uids if step == 1 else uids[index::step], consumer)
        if settled:
            record.settled(uids)

    def _direct_columns(self, ring: list[Consumer], arrival: Arrival | Parcel, first: int, end: int) -> None:
        """Settled by being sent: nothing is kept, nothing need be on disk."""
        step = len(ring)
        for index, consumer in enumerate(ring[: end - first], first):
            self._hand_over(consumer, arrival, slice(index, end, step))

    def _direct_entries(self, ring: list[Consumer], arrival: Arrival, first: int, end: int) -> None:
        """To be settled: an entry for each, which never sees the list unless it comes back."""
        its = self._entries
        entries = its.create(arrival, first, end, ACQUIRED, durable=its.options.durable)
        its.unsettled.update(zip(arrival.uids[first:end], entries, strict=True))
        part = entries[0].part
        if part is not None and part is entries[-1].part:
            its.context.draft.handed_out_up_to(part, entries[-1].position)
        elif its.options.durable:
            its.context.draft.handed_out(entries)
        step = len(ring)
        for index, consumer in enumerate(ring[: end - first], first):
            for entry in entries[index - first :: step]:
                entry.holder = consumer.link
            self._hand_over(consumer, arrival, slice(index, end, step))

    @staticmethod
    def _hand_over(consumer: Consumer, arrival: Arrival | Parcel, its: slice) -> None:
        """Takes them from its credit."""
        uids, facts, properties, bodies = arrival.uids, arrival.facts, arrival.properties, arrival.bodies
        if (its.start, its.stop, its.step) != (0, len(bodies), 1):
            uids, facts, properties, bodies = uids[its], facts[its], properties[its], bodies[its]
        consumer.messages -= len(bodies)
        carried = weight(properties, bodies)
        consumer.size -= carried
        consumer.link.deliveries.add(consumer.handle, 0, uids, facts, properties, bodies, carried)

    # -------------------------------------------------------------- from the list

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """Delivers until nothing is available or nobody can take; entries past their time go to `expired`.

        When these are a turn's work it ends as well.
        """
        ready, consumers = self._entries.ready, self._consumers
        while ready.count and len(expired) < turn.AT_ONCE and (ring := consumers.ring):
            serving = list(islice(ring, ready.count))
            step = len(serving)
            limit = step * min([consumer.messages for consumer in serving])
            size = min([consumer.size for consumer in serving])
            if (parcel := ready.parcel()) and all(consumer.settled for consumer in serving):
                self._from_parcel(parcel, serving, ring, parcel.end_of(limit, size))
                continue
            taken = ready.take(limit, size, now, expired)
            if not taken:
                continue
            for index, consumer in enumerate(serving):
                if mine := taken if step == 1 else taken[index::step]:
                    self._sending.hand_out(consumer, mine)
            consumers.turn(ring, len(taken))
            self._entries.context.traffic += len(taken)

    def _from_parcel(self, parcel: Parcel, serving: list[Consumer], ring: deque[Consumer], end: int) -> None:
        """Those that wait before an index, to consumers that settle nothing."""
        first, count = parcel.first, end - parcel.first
        if self._entries.record.on:
            self._record_delivered(serving, parcel.span(first, end), settled=True)
        self._direct_columns(serving, parcel, first, end)
        parcels.gone(self._entries, parcel, end)
        self._consumers.turn(ring, count)
        self._entries.context.traffic += count
