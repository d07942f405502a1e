"""How far one consumer has come in a queue of which it does not want everything."""

from __future__ import annotations

from typing import Any

from services.queue.machine.consumers import Consumer
from services.queue.machine.entry import Entry


class Cursor:
    """`seen` is the rank of the last entry that it has looked at, None before the first.

    `at_edge`: it has looked at all that is in front. `heard`: so many of those that came in among them later. `taking`
    gathers what it is to be sent in this turn. `served` and `visited` grow with every turn that it had. A
    browser is `shown` entries up to a rank.
    """

    __slots__ = ("_room", "at_edge", "browses", "consumer", "heard", "seen", "served", "shown", "taking", "visited")

    def __init__(self, consumer: Consumer, *, at_edge: bool, heard: int) -> None:
        self.consumer = consumer
        self.browses = consumer.browse
        self.at_edge = at_edge
        self.heard = heard
        self.seen: Any = None
        self.served = self.visited = 0
        self.shown: Any = None
        self.taking: list[Entry] = []
        self._room = consumer.size

    @property
    def able(self) -> bool:
        """Whether there is credit for one more; of several consumers one may be active."""
        consumer = self.consumer
        return (consumer.queued or self.browses) and len(self.taking) < consumer.messages and self._room > 0

    def begin(self) -> None:
        """A turn of the queue."""
        self._room = self.consumer.size

    def take(self, entry: Entry, turn: int) -> None:
        """It is to be sent this one."""
        self.taking.append(entry)
        self._room -= entry.message.weight
        self.served = turn

    def taken(self) -> list[Entry]:
        """What it is to be sent; the next turn begins with nothing."""
        taking, self.taking = self.taking, []
        return taking

    def passed(self, rank: Any) -> bool:  # noqa: ANN401 - an order's own
        """Whether it does not come by there any more."""
        return self.at_edge or (self.seen is not None and rank <= self.seen)

    def has_seen(self, rank: Any) -> bool:  # noqa: ANN401 - an order's own
        """Whether a browser has come by there: it does not see what comes back."""
        return self.browses and self.shown is not None and bool(rank <= self.shown)

    def show(self, entry: Entry, rank: Any) -> None:  # noqa: ANN401 - an order's own
        """A browser is to be sent this one, and leaves it where it is."""
        self.take(entry, 0)
        self.shown = rank if self.shown is None else max(self.shown, rank)

    def stop_at(self, rank: Any) -> None:  # noqa: ANN401 - an order's own
        """It has looked at all up to `rank`, and goes on from there some time."""
        self.at_edge, self.seen = False, rank
