"""Claims of more than goes in one turn: in parts, and those that wait are looked for in parts.

Between `Queue.hold_up` and `Queue.go_on`: what is claimed must not be delivered before it is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.queue.machine import turn
from services.queue.machine.claims import Claims
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.entrance import Entrance
from services.queue.machine.entries import Entries
from services.queue.machine.walk import Walk


class Seeking:
    """Of one queue."""

    __slots__ = ("_claims", "_entrance", "_entries")

    def __init__(self, entries: Entries, claims: Claims, entrance: Entrance) -> None:
        self._entries, self._claims, self._entrance = entries, claims, entrance

    def is_much(self, held: Sequence[int], most: int) -> bool:
        """Whether to claim these takes more than `most` looks."""
        return len(held) > most or (self._entries.count + len(held) > most and not self._are_somebodys(held))

    def _are_somebodys(self, uids: Iterable[int]) -> bool:
        """Then none of them has to be looked for."""
        return self._entries.unsettled.keys() >= set(uids)

    def expect(self, held: Sequence[int], link: ConsumerLink, consumer: Consumer | None, now: int) -> None:
        """`link` holds these, as Queue.claim says: those that wait are looked for later, what comes is theirs."""
        self._claims.expect(held, link, consumer, now)

    def begin(self) -> Walk:
        """All that there is to look at now."""
        return self._entries.walk(held=False)

    def look(self, walk: Walk, now: int) -> bool:
        """Looks a part further; whether there is more."""
        if self._claims.seeks and not walk.over:
            self._entrance.claimed(*self._claims.find(walk.some(turn.SCATTERED)), now)
        if self._claims.seeks and not walk.over:
            return True
        self._claims.give_up_seeking()
        return False
