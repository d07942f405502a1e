"""Which way a queue delivers: in columns, as long as every consumer takes whatever is next; else by choosing.

A queue with message groups always chooses.
"""

from __future__ import annotations

from services.queue.machine.arrival import Arrival
from services.queue.machine.consumers import Consumer, Consumers
from services.queue.machine.delivery.columns import ColumnDelivery
from services.queue.machine.delivery.groups import KINDS
from services.queue.machine.delivery.selective import SelectiveDelivery
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.order.ready import Selectable


class Dispatcher:
    """See Delivery. Changes over when the first consumer comes that chooses, and when the last one has gone."""

    __slots__ = ("_columns", "_consumers", "_entries", "_front", "_grouped", "_left", "_looks", "_selective")

    def __init__(self, entries: Entries, consumers: Consumers) -> None:
        self._entries = entries
        self._consumers = consumers
        self._columns = ColumnDelivery(entries, consumers)
        self._selective: SelectiveDelivery | None = None
        self._left = False  # more to look at, by a delivery that is no more
        self._grouped = entries.options.groups in KINDS
        if self._grouped:
            groups = KINDS[entries.options.groups](entries.options, entries.ready.rank)
            self._selective = SelectiveDelivery(entries, consumers, groups)
            entries.on_settled, entries.on_held = self._selective.settled, self._selective.held
        self._front: Selectable | None = None  # what was selectable, until it is no more
        self._looks = False  # whether somebody chooses is another question by now
        consumers.watcher = self

    # -------------------------------------------------------------- as ConsumersWatcher says

    def came(self, consumer: Consumer) -> None:
        """A consumer is there from now on."""
        if self._selective:
            self._selective.attach(consumer)
        elif consumer.chooses:
            self._selective, self._front = SelectiveDelivery(self._entries, self._consumers), None

    def went(self, consumer: Consumer) -> None:
        """A consumer is not there any more."""
        if self._entries.not_for:
            self._entries.not_for.gone(consumer)
        if self._selective is not None:
            self._selective.detach(consumer)
            self._choose_no_more()

    def chose(self) -> None:
        """A consumer that is there has begun to choose, or does so no more; that has time until the next delivery."""
        self._looks = True

    def _look(self) -> None:
        self._looks = False
        if self._selective is not None:
            self._choose_no_more()
        elif any(each.chooses for each in self._consumers):
            self._selective, self._front = SelectiveDelivery(self._entries, self._consumers), None

    def _choose_no_more(self) -> None:
        """Unless somebody does."""
        if self._selective is None:
            return
        if not self._grouped and not any(each.chooses for each in self._consumers):
            # Others may have credit for what it had no time to look at.
            self._left = self._selective.unfinished
            self._front, self._selective = self._selective.ready, None

    def hands_groups_on(self, consumer: Consumer) -> bool:
        """As Queue says."""
        return self._grouped and self._selective is not None and self._selective.hands_groups_on(consumer)

    def has_offered_all(self, consumer: Consumer) -> bool:
        """As Queue says."""
        return not self._left and (self._selective is None or self._selective.has_offered_all(consumer))

    # -------------------------------------------------------------- as Delivery says

    @property
    def chooses(self) -> bool:
        return self._selective is not None

    @property
    def unfinished(self) -> bool:
        return self._left or (self._selective is not None and self._selective.unfinished)

    @property
    def serves(self) -> bool:
        return self._selective is None and bool(self._consumers.ring)

    def go_on(self) -> None:
        self._left = False
        if self._selective:
            self._selective.unfinished = False

    def direct(self, arrival: Arrival) -> int:
        if self._looks:
            self._look()
        return 0 if self._selective else self._columns.direct(arrival)

    def from_list(self, now: int, expired: list[Entry]) -> None:
        if self._looks:
            self._look()
        if self._selective:
            self._selective.from_list(now, expired)
            return
        self._columns.from_list(now, expired)
        if self._front is None:
            return
        self._front.take_fresh()  # which nobody asks for any more
        if (plain := self._front.plain()) is not self._front:
            self._entries.ready, self._front = plain, None
