"""Claims of more than goes in one turn: in parts, and those that wait are looked for in parts.

Between `hold_up` and `go_on`: what is claimed must neither be delivered nor dropped before it is found. It stands in
front, where messages go that are too many, or past their time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.queue.machine import turn
from services.queue.machine.backlog import Backlog
from services.queue.machine.claims import Claims
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.entrance import Entrance
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry
from services.queue.machine.room import Room
from services.queue.machine.walk import Walk

# In an order that is not that of arrival, to come by one, and to take it out, takes so many times as long.
_SLOW_TO_SEE = 4
_SLOW_TO_LEAVE = 3


class Seeking:
    """Of one queue."""

    __slots__ = ("_backlog", "_claims", "_entrance", "_entries", "_found", "_room")

    def __init__(self, entries: Entries, claims: Claims, entrance: Entrance, backlog: Backlog, room: Room) -> None:
        self._entries, self._claims, self._entrance = entries, claims, entrance
        self._backlog, self._room = backlog, room
        self._found: list[Entry] = []  # and not taken out yet: that takes longer than to look at one

    def looks(self, held: Sequence[int]) -> int:
        """What it costs to claim these at once, at most, in messages that are looked at."""
        if len(held) > turn.AT_ONCE or self._are_somebodys(held):
            return len(held)
        return self._entries.count + len(held) * (turn.AT_ONCE // turn.SCATTERED)

    def _are_somebodys(self, uids: Iterable[int]) -> bool:
        """Then none of them has to be looked for."""
        return self._entries.unsettled.keys() >= set(uids)

    @property
    def by_arrival(self) -> bool:
        """Whether messages leave as they came: then it takes less to look at them, or to put them back."""
        return self._entries.ready.by_arrival

    @property
    def admits_all(self) -> bool:
        """Whether newcomers come in however much waits: what clients hold, and is not found yet, keeps none out."""
        return not self._entries.options.limited or self._room.policy.drops_head

    def hold_up(self) -> None:
        """Nothing of the queue is delivered, nor dropped as too much or past its time, before `go_on`."""
        self._backlog.returning += 1
        self._backlog.claiming = self._room.claiming = True

    def go_on(self, now: int) -> None:
        """All that is claimed is found: delivers what can be, and drops what is too much or past its time."""
        self._claims.give_up_seeking()
        self._found = []
        self._backlog.returning -= 1
        self._backlog.claiming = self._room.claiming = False
        self._backlog.dispatch(now)
        self._room.trim(now)
        self._entries.context.expect(self._entries.options.queue_id)

    def expect(self, held: Sequence[int], link: ConsumerLink, consumer: Consumer | None, now: int) -> None:
        """`link` holds these, as Queue.claim says: those that wait are looked for later, what comes is theirs."""
        self._claims.expect(held, link, consumer, now)

    def begin(self) -> Walk:
        """All that there is to look at now."""
        self._found = []
        return self._entries.walk(held=False)

    def look(self, walk: Walk, now: int) -> bool:
        """Looks a part further, or takes out some of what it has come to; whether there is more."""
        by_arrival = self.by_arrival
        most = turn.FOUND if by_arrival else -(-turn.FOUND // _SLOW_TO_LEAVE)
        if some := self._found[:most]:
            del self._found[:most]
            self._entrance.claimed(*self._claims.find(some), now)
        elif self._claims.seeks and not walk.over:
            self._found = self._claims.sought(walk.some(turn.SEEN if by_arrival else -(-turn.SEEN // _SLOW_TO_SEE)))
        return self._claims.seeks and (bool(self._found) or not walk.over)
