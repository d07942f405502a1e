"""What becomes of deliveries: accepted, rejected, or back to their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.common.ledger.stages import CONSUMER_GONE, NOT_SENT, RELEASED
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import FINAL, Claims
from services.queue.machine.context import DELIVERY_LIMIT, REJECTED
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, Undecided
from services.queue.machine.modifying import UNCHANGED, Change, Modifying
from services.queue.machine.record import uids_of
from services.queue.machine.retry import due, is_delayed
from services.queue.machine.room import Room
from services.rpc import queue_pb2 as pb

_BACK: Final = {
    pb.RELEASE: RELEASED, pb.ABANDON: CONSUMER_GONE, pb.RESTORE: NOT_SENT, pb.RETURN: RELEASED, pb.TRIED: RELEASED,
}  # fmt: skip
_UNTRIED: Final = frozenset({pb.RESTORE, pb.RETURN})


class EntrySettlement:
    """Of one queue. See Queue, whose methods of the same names these are."""

    __slots__ = ("_backlog", "_claims", "_entries", "_modifying", "_room")

    def __init__(self, entries: Entries, claims: Claims, backlog: Backlog, room: Room, modifying: Modifying) -> None:
        self._entries = entries
        self._claims = claims
        self._backlog = backlog
        self._room = room
        self._modifying = modifying

    def settle(self, outcome: pb.Outcome.ValueType, uids: Sequence[int], now: int, change: Change = UNCHANGED) -> str:
        """Unknown uids are ignored."""
        coming = self._claims.settled(outcome, uids) if self._claims else ()
        if outcome == pb.ABANDON:
            uids = self._claims.abandon(uids)
        entries = self._entries.take_unsettled(uids)
        try:
            return self._modifying.apply(entries, change, coming) if change is not UNCHANGED else ""
        finally:  # whatever it raises: they would be nobody's, and nowhere
            self._done(outcome, entries, uids if len(entries) == len(uids) else None, now)
            self._look_again(now)

    def settle_held(
        self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int, change: Change, *, staged: bool
    ) -> str:
        """The transaction is complete; `staged`: the journal has their dequeue already."""
        # One that was settled otherwise meanwhile, because its gateway has told that again, is done with.
        entries = self._entries.take_unsettled(uids_of(entries))
        try:
            return self._modifying.apply(entries, change) if change is not UNCHANGED else ""
        finally:
            if staged:
                self._settled_on_disk(outcome, entries)
            else:
                self._done(outcome, entries, None, now)
            self._look_again(now)

    def moved(self, entries: list[Entry], now: int, *, staged: bool) -> None:
        """They are in another queue, as others: their record says so by itself."""
        entries = self._entries.take_unsettled(uids_of(entries))
        (self._entries.forget_dequeued if staged else self._entries.forget)(entries)
        self._look_again(now)

    def settle_coming(
        self, outcome: pb.Outcome.ValueType, uids: Sequence[int], holder: Undecided, now: int, change: Change
    ) -> str:
        """The same for uids that were to come when they were held; annotations of what comes later are lost."""
        return self.settle(outcome, uids if outcome in FINAL else self._claims.still(uids, holder), now, change)

    def _look_again(self, now: int) -> None:
        """Where what was held kept others from something."""
        if self._entries.on_settled:
            self._backlog.dispatch(now)

    def _done(self, outcome: pb.Outcome.ValueType, entries: list[Entry], uids: Sequence[int] | None, now: int) -> None:
        if outcome == pb.ACCEPT:
            self._entries.settled(entries, uids)
        elif entries:
            self._come_back(outcome, entries, now)

    def _settled_on_disk(self, outcome: pb.Outcome.ValueType, entries: list[Entry]) -> None:
        """The journal has their dequeue: accepted, or rejected where nobody wants dead letters."""
        its = self._entries
        if its.record.on and entries:
            its.record.settled_for_good(uids_of(entries), accepted=outcome == pb.ACCEPT)
        its.forget_dequeued(entries)

    def _come_back(self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int) -> None:
        its = self._entries
        if outcome == pb.RETURN and its.acquired is not None:
            its.acquired.untried(entries)
        if outcome == pb.REJECT:
            if its.record.on:
                its.record.settled(uids_of(entries), REJECTED)
            its.discard(entries, REJECTED, now)
            return
        tried = entries if outcome in _UNTRIED else self._attempted(entries, now, again=outcome == pb.TRIED)
        entries = self._claims.inherited(tried)
        if its.record.on and entries:
            its.record.requeued(uids_of(entries), _BACK[outcome])
        if is_delayed(its.options, outcome):
            its.set_aside(due(its.options, entries, now))
        else:
            its.put_back(entries)
        self._backlog.dispatch(now)
        self._room.trim(now)

    def _attempted(self, entries: list[Entry], now: int, *, again: bool) -> list[Entry]:
        """Counts the attempt; gives those that may be tried again. `again`: where it is noted, it was counted."""
        for entry in entries:
            entry.attempts += not (again and self._is_noted(entry))
        limit = self._entries.options.delivery_limit
        if limit is None:
            return entries
        if spent := [entry for entry in entries if entry.attempts > limit]:
            self._entries.discard(spent, DELIVERY_LIMIT, now)
        left = [entry for entry in entries if entry.attempts <= limit]
        if self._entries.attempts is not None:
            self._entries.attempts.failed(left)
        return left

    def _is_noted(self, entry: Entry) -> bool:
        its = self._entries.attempts
        return its is not None and its.of(entry) > 0
