"""How much a queue may look at in one turn, and what it comes by meanwhile that is past its time."""

from __future__ import annotations

from services.common.selectors.message import MessageView
from services.queue.machine import turn
from services.queue.machine.delivery.cursor import Cursor
from services.queue.machine.entry import Entry


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
        return self.left <= 0 or len(self.expired) >= turn.AT_ONCE

    def wants(self, cursor: Cursor, view: MessageView) -> bool:
        """Whether its consumer wants a message: a look."""
        self.left -= 1
        interest = cursor.consumer.interest
        return interest is None or interest.wants(view)
