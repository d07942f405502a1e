"""Which publishes of a session are safe: completions come in any order, confirms go out in as few ranges as can be."""

from __future__ import annotations

from typing import NamedTuple


class Confirm(NamedTuple):
    """What to tell the client of publishes `first`..`last`."""

    first: int
    last: int
    cumulative: bool  # every publish before them is answered too
    accepted: bool


class ConfirmTracker:
    """Numbers publishes from 1, as AMQP 0-9-1's confirm extension does."""

    def __init__(self) -> None:
        self._next = 1  # the number of the next publish
        self._lowest = 1  # the lowest number that has no answer yet
        self._early: dict[int, int] = {}  # answered ranges above it, first → last
        self._single: list[Confirm] = []  # answers that no cumulative one covers
        self._up_to = 0  # the number up to which a cumulative answer is due

    def number(self, count: int) -> int:
        """The number of the first of `count` new publishes."""
        first = self._next
        self._next += count
        return first

    def complete(self, first: int, last: int, *, accepted: bool) -> None:
        """Publishes `first`..`last` are safe, or refused. Each number is completed once."""
        in_order = first == self._lowest
        if accepted and in_order:
            self._up_to = last
        else:
            self._single.append(Confirm(first, last, cumulative=False, accepted=accepted))
        if not in_order:
            self._early[first] = last
            return
        self._lowest = last + 1
        while (early := self._early.pop(self._lowest, None)) is not None:
            self._lowest = early + 1

    def take(self) -> list[Confirm]:
        """The answers since the last call, in the order in which to send them: refusals before what covers them."""
        ready, self._single = self._single, []
        if self._up_to:
            ready.append(Confirm(1, self._up_to, cumulative=True, accepted=True))
            self._up_to = 0
        return ready
