"""What transactions do with a queue: room and places are kept for what they bring, and what they settle is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.queue.machine.arrival import Arrival
from services.queue.machine.claims import Claims
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, Holder, Undecided
from services.queue.machine.features.admission import Admission
from services.queue.machine.giving_back import given_up
from services.queue.machine.modifying import UNCHANGED, Change
from services.queue.machine.record import uids_of
from services.queue.machine.room import Room
from services.queue.machine.settlement import EntrySettlement
from services.rpc import queue_pb2 as pb


class Transacted:
    """Of one queue."""

    __slots__ = ("_admission", "_claims", "_entries", "_room", "_settlement")

    def __init__(
        self, entries: Entries, claims: Claims, room: Room, settlement: EntrySettlement, admission: Admission
    ) -> None:
        self._entries, self._claims, self._room = entries, claims, room
        self._settlement, self._admission = settlement, admission

    def reserve(self, count: int, size: int) -> bool:
        """Keeps room for messages of a transaction; False when they would overflow."""
        return self._room.reserve(count, size)

    def place(self, count: int) -> int:
        """Keeps a place for messages of a transaction, the next `count` positions: where they will be in the queue."""
        return self._entries.keep_place(count)

    def stage(self, arrival: Arrival, now: int) -> None:
        """Enters for the journal what features keep of messages of a transaction, should it be committed."""
        self._admission.stage(arrival, now)

    def unreserve(self, count: int, size: int) -> None:
        """Gives up what `reserve` kept."""
        self._room.unreserve(count, size)

    def hold(self, uids: Iterable[int], holder: Undecided) -> tuple[list[Entry], list[int]]:
        """Unsettled entries that a transaction settles, and uids of claimed ones that are to come: `holder`'s now."""
        return self._claims.hold(uids, holder)

    def settle_held(
        self,
        outcome: pb.Outcome.ValueType,
        entries: list[Entry],
        now: int,
        change: Change = UNCHANGED,
        *,
        staged: bool,
    ) -> str:
        """The transaction is complete; `staged`: the journal has their dequeue already. Gives as Queue.settle does."""
        return self._settlement.settle_held(outcome, entries, now, change, staged=staged)

    def moved(self, entries: list[Entry], now: int, *, staged: bool) -> None:
        """The same of what is in another queue now."""
        self._settlement.moved(entries, now, staged=staged)

    def settle_coming(
        self,
        outcome: pb.Outcome.ValueType,
        uids: Sequence[int],
        holder: Undecided,
        now: int,
        change: Change = UNCHANGED,
    ) -> str:
        """The same for uids that were to come when `hold` was called, whether they have come since or not."""
        return self._settlement.settle_coming(outcome, uids, holder, now, change)

    def still(self, uids: Sequence[int], holder: Undecided) -> list[int]:
        """Of such uids, those that are `holder`'s yet."""
        return self._claims.still(uids, holder)

    def let_go(self, uids: Sequence[int], holder: Undecided) -> list[Entry]:
        """The transaction is off, for such uids: gives the entries that have come since, for `unhold`."""
        return self._claims.let_go(uids, holder)

    def unhold(self, entries: list[Entry], holder: object, now: int) -> None:
        """The transaction is off: they are `holder`'s again, or released when there is none, or it is over."""
        for entry in entries:
            entry.holder = holder
        if holder is None or (isinstance(holder, Holder) and holder.over):
            self._settlement.settle(given_up(holder), uids_of(entries), now)
