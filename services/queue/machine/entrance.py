"""What is published to a queue: past the list to consumers that can take it, or into the list, or not at all."""

from __future__ import annotations

from collections.abc import Mapping

from services.common.ledger.stages import NO_CONSUMERS
from services.common.message.facts import Facts
from services.queue.machine import parcels
from services.queue.machine.arrival import Arrival
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import Claims
from services.queue.machine.consumers import Consumers
from services.queue.machine.context import MAXLEN
from services.queue.machine.delivery import Delivery
from services.queue.machine.entries import Entries
from services.queue.machine.entry import GONE, Entry
from services.queue.machine.record import uids_of
from services.queue.machine.room import Room
from services.queue.machine.settlement import EntrySettlement
from services.rpc import queue_pb2 as pb

Refused = tuple[int, int, "pb.Reason.ValueType"]
"""Index of the first message within the run, count, why."""


class Entrance:
    """Of one queue."""

    __slots__ = ("_backlog", "_claims", "_consumers", "_delivery", "_entries", "_room", "_settlement")

    def __init__(
        self,
        entries: Entries,
        consumers: Consumers,
        claims: Claims,
        delivery: Delivery,
        backlog: Backlog,
        room: Room,
        settlement: EntrySettlement,
    ) -> None:
        self._entries = entries
        self._consumers = consumers
        self._claims = claims
        self._delivery = delivery
        self._backlog = backlog
        self._room = room
        self._settlement = settlement

    def publish(self, arrival: Arrival, now: int, *, reserved: bool) -> list[Refused]:
        """As Queue.publish says."""
        its = self._entries
        if reserved:
            self._room.unreserve(len(arrival), sum(map(len, arrival.bodies)))
        its.context.traffic += len(arrival)
        if arrival.expire_by(its.options):
            self._backlog.expects_expiry(own=arrival.times_differ)
        if self._claims and self._claims.among(arrival.uids, now):
            return self._take_claimed(arrival, now)
        done = 0 if its.ready.count or self._backlog.returning else self._pass_by(arrival)
        if done == len(arrival):
            return []
        if arrival.immediate:
            return self._deliver_or_refuse(arrival, done, now)
        return self._store(arrival, done, now, reserved=reserved)

    def _pass_by(self, arrival: Arrival) -> int:
        """Delivers what consumers can take at once, past the list; gives how many."""
        its = self._entries
        if its.aside or its.ring is not None:  # some of it may not be delivered yet, or drives out others
            return 0
        position = its.place_of(arrival)
        done = self._delivery.direct(arrival)
        if its.ready.displaces:
            its.ready.passed_by(arrival, done, position)
        return done

    def _take_claimed(self, arrival: Arrival, now: int) -> list[Refused]:
        """Some of it clients have had already; a former owner took all of it, so that it is not refused now."""
        self.claimed(*self._claims.arrived(self._entries.append(arrival, 0, len(arrival), now)), now)
        self._backlog.dispatch(now)
        self._room.trim(now)
        return []

    def claimed(self, entries: list[Entry], outcomes: Mapping[int, pb.Outcome.ValueType], now: int) -> None:
        """These are their claimants', who have settled some of them before they were here."""
        self._entries.handed_out(entries)
        for uid, outcome in outcomes.items():
            self._settlement.settle(outcome, [uid], now)

    def _deliver_or_refuse(self, arrival: Arrival, first: int, now: int) -> list[Refused]:
        """Immediate: in no list but for the moment until a consumer has it."""
        if self._delivery.chooses or self._entries.aside:
            return self._offer_or_refuse(arrival, first, now)
        end = min(len(arrival), first + self._capacity())
        if end > first:
            self._entries.append(arrival, first, end, now)
            self._backlog.dispatch(now)
        if end == len(arrival):
            return []
        self._entries.record.dropped(arrival.span(end, len(arrival)), NO_CONSUMERS)
        return [(end, len(arrival) - end, pb.NO_CONSUMERS)]

    def _capacity(self) -> int:
        """For how many more messages consumers have credit. Where something comes back first, it is theirs as soon as
        that is back: with credit for all that waits, and for all that may come back. A queue that may be full has no
        room for what waits.
        """
        its, comes_first = self._entries, 0
        if self._backlog.returning and self._delivery.serves and not its.options.limited:
            comes_first = its.ready.count + len(its.unsettled)
        elif its.ready.count or not self._serves:
            return 0
        return max(self._consumers.capacity() - comes_first, 0)

    def _offer_or_refuse(self, arrival: Arrival, first: int, now: int) -> list[Refused]:
        """The same where one that could may not take all of it: what nobody has taken is taken out again."""
        its = self._entries
        entries = its.append(arrival, first, len(arrival), now)
        self._backlog.dispatch(now)
        left = its.take_back(entries)
        its.drop(left, NO_CONSUMERS)
        gone = set(uids_of(left))
        return [(index, 1, pb.NO_CONSUMERS) for index in range(first, len(arrival)) if arrival.uids[index] in gone]

    def _store(self, arrival: Arrival, first: int, now: int, *, reserved: bool) -> list[Refused]:
        its, end = self._entries, len(arrival)
        while first < end:
            last = self._at_once(first, end)
            admitted = last - first if reserved else self._admitted(arrival, first, last, now)
            if admitted:
                if not (self._consumers.first_settles_nothing and parcels.keep(its, arrival, first, first + admitted)):
                    its.append(arrival, first, first + admitted, now)
                self._backlog.dispatch(now)
                self._room.trim(now)
                if its.ring is not None and its.on_settled:  # what was somebody's kept others from something
                    self._backlog.dispatch(now)
            first += admitted
            if not admitted:
                return self._refuse(arrival, first, end, now)
        return []

    def _at_once(self, first: int, end: int) -> int:
        """Consumers that can take keep a queue from being full: then no more comes in at a time than fits."""
        options = self._entries.options
        if not options.limited or not self._serves:
            return end
        if self._entries.aside:
            return first + 1
        by_count = options.max_bytes is None and options.max_length
        return min(end, first + (by_count or 1))

    def _admitted(self, arrival: Arrival, first: int, last: int, now: int) -> int:
        if not self._entries.options.limited:
            return last - first
        if self._serves and not self._waits(arrival.facts[first], now):
            return last - first  # at least one leaves again at once
        return self._room.admits([len(body) for body in arrival.bodies[first:last]], letters=bool(arrival.letters))

    def _waits(self, facts: Facts, now: int) -> bool:
        """Whether a message has to wait for its time."""
        return self._entries.options.holds and (facts.not_before or 0) > now

    @property
    def _serves(self) -> bool:
        """Whether something that is ready would leave at once."""
        return self._backlog.is_empty and self._delivery.serves

    def _refuse(self, arrival: Arrival, first: int, end: int, now: int) -> list[Refused]:
        its = self._entries
        if self._room.passes_on:
            its.discard(its.create(arrival, first, end, GONE, durable=False), MAXLEN, now)
        else:
            its.record.dropped(arrival.span(first, end), MAXLEN)
        return [(first, end - first, pb.OVERFLOW)]
