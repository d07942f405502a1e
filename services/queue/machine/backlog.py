"""What a queue is behind with: more than goes in one turn has expired, or comes back.

Nothing is delivered before that is done, or it would overtake what belongs before it.
"""

from __future__ import annotations

from services.queue.machine import turn
from services.queue.machine.context import EXPIRED
from services.queue.machine.delivery import Delivery
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.order.ready import overdue
from services.queue.machine.record import uids_of


class Backlog:
    """Of one queue; `returning` counts those who give back in parts what they held.

    `claiming`: some of what waits is a client's, and is not found yet: nothing goes for being past its time.
    """

    __slots__ = ("_behind", "_delivery", "_entries", "_may_expire", "claiming", "returning")

    def __init__(self, entries: Entries, delivery: Delivery) -> None:
        self._entries = entries
        self._delivery = delivery
        self._may_expire = False
        self._behind = False  # with what is past its time: the clock does the rest
        self.returning = 0
        self.claiming = False

    @property
    def is_empty(self) -> bool:
        """As far as is known without a look at the clock."""
        return not self._behind and not self.returning

    def expects_expiry(self, *, own: bool) -> None:
        """There is something now that expires; `own`: by a time of its own."""
        self._may_expire = True
        self._entries.expiring.expects(own=own)
        self._look_soon()

    def lags(self, now: int) -> bool:
        """As Queue.lags says."""
        aside = self._entries.aside
        if aside is None:
            return self._is_behind(now)
        self.dispatch(now)  # what is due by now is not only for who asks
        return self._is_behind(now) or aside.is_due(now)

    def dispatch(self, now: int) -> None:
        """As Queue.dispatch says."""
        if self._entries.aside:
            self._entries.release(now)
        if self._is_behind(now) or self._delivery.unfinished:
            return
        expired: list[Entry] = []
        self._delivery.from_list(now, expired)
        self._past(expired, now)
        if self._delivery.unfinished:
            self._look_soon()

    def expire(self, now: int) -> None:
        """As Queue.expire says."""
        if self.claiming:
            return
        self._behind = False
        self._delivery.go_on()
        self._give_up(now)

    def deadlines(self) -> list[int]:
        """When there is something to do for it."""
        if self.claiming:
            return []
        if self._behind or self._delivery.unfinished:
            return [1]
        times = self._entries.expire_at() if self._may_expire else ()
        aside = self._entries.aside
        return [time for time in (*times, aside.look() if aside else 0) if time]

    def _is_behind(self, now: int) -> bool:
        if self._may_expire and not self._behind and not self.claiming:
            self._give_up(now)
        return not self.is_empty

    def _give_up(self, now: int) -> None:
        if at_front := overdue(self._entries.ready, now):
            self._past(at_front, now)
        else:  # what stands further behind keeps nobody waiting
            self._drop(self._entries.overdue(now), now)

    def _past(self, expired: list[Entry], now: int) -> None:
        self._drop(expired, now)
        if len(expired) >= turn.AT_ONCE and self._entries.ready.count:
            self._behind = True
            self._look_soon()

    def _drop(self, expired: list[Entry], now: int) -> None:
        its = self._entries
        if not expired:
            return
        if its.record.on:
            its.record.expired(uids_of(expired))
        its.discard(expired, EXPIRED, now)

    def _look_soon(self) -> None:
        self._entries.context.expect(self._entries.options.queue_id)
