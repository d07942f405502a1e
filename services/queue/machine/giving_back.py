"""What somebody had who is there no more, or gives back much: in parts, and nothing is delivered before the last."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine import turn
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import Claims
from services.queue.machine.entry import Holder
from services.queue.machine.settlement import EntrySettlement
from services.rpc import queue_pb2 as pb


class GivingBack:
    """Of one queue."""

    __slots__ = ("_backlog", "_claims", "_settlement")

    def __init__(self, claims: Claims, backlog: Backlog, settlement: EntrySettlement) -> None:
        self._claims, self._backlog, self._settlement = claims, backlog, settlement

    def hold_up(self) -> None:
        """Much comes back in parts: nothing is delivered before `go_on`."""
        self._backlog.returning += 1

    def go_on(self, now: int) -> None:
        """All of it is back."""
        self._backlog.returning -= 1
        self._backlog.dispatch(now)

    @property
    def looks(self) -> int:
        """What `release_held_by` costs, at most, in messages that go back in one turn."""
        return min(self._claims.count, turn.AT_ONCE)

    def release_held_by(self, holder: object, now: int) -> list[int]:
        """Gives everything that `holder` has unsettled back to its place, as redelivered.

        More than goes in one turn is given to the caller, for `release`, with others' if it takes long to tell them
        apart: nothing is delivered before the last of it.
        """
        uids = self._claims.all_held()
        if len(uids) > turn.SEEN or len(uids := self._claims.release(holder, uids)) > turn.AT_ONCE:
            self._backlog.returning += 1
            return uids
        self._settlement.settle(given_up(holder), uids, now)
        return []

    def had(self, uids: Sequence[int], holder: object) -> list[int]:
        """Those of some that are for `release`: that takes longer than to look at them."""
        return self._claims.had(uids, holder)

    def release(self, uids: Sequence[int], holder: object, now: int, *, last: bool) -> None:
        """Gives back what `holder` has of these yet; `last`: there is no more."""
        self._backlog.returning -= last
        self._settlement.settle(given_up(holder), self._claims.release(holder, uids), now)
        self._backlog.dispatch(now)


def given_up(holder: object) -> pb.Outcome.ValueType:
    """How what somebody had goes back who is there no more."""
    return pb.RESTORE if isinstance(holder, Holder) and holder.moves else pb.ABANDON
