"""How much a queue may look at in one turn, and what it comes by meanwhile that is past its time."""

from __future__ import annotations

from typing import Final

from services.common.selectors.message import MessageView
from services.queue.machine import turn
from services.queue.machine.delivery.cursor import Cursor
from services.queue.machine.entry import Entry

_PROPERTIES: Final = 500  # bytes of them that are read in the time of a look


class Looks:
    """Of one turn, at the time `now`: `left` are the looks, `expired` gets what is past its time."""

    __slots__ = ("expired", "left", "now")

    def __init__(self, now: int, expired: list[Entry]) -> None:
        self.now = now
        self.expired = expired
        self.left = turn.LOOKS

    @property
    def spent(self) -> bool:
        """Whether it is all else's turn."""
        return not self.more_than(0)

    def more_than(self, least: int) -> bool:
        """Whether more are left than that."""
        return self.left > least and len(self.expired) < turn.AT_ONCE

    def wants(self, cursor: Cursor, entry: Entry, view: MessageView) -> bool:
        """Whether its consumer wants a message: a look, or as many as it takes the time of."""
        interest = cursor.consumer.interest
        if interest is None:
            self.left -= 1
            return True
        self.left -= interest.cost * (1 + len(entry.message.properties) // _PROPERTIES)
        return interest.wants(entry, view)
