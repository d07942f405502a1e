"""Confirms of one channel (RabbitMQ's extension): outcomes come in any order, acks go out in as few as can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from services.gateway.outcomes import Accepted, PublishDisposition


class Confirm(NamedTuple):
    """What to tell the client of publishes `first`..`last`."""

    first: int
    last: int
    cumulative: bool  # every publish before them is answered too
    accepted: bool


class Confirms:
    """Numbers publishes from 1, in the order in which they came since confirm.select."""

    def __init__(self) -> None:
        self.next = 1  # the number of the next publish
        self._lowest = 1  # the lowest number that has no answer yet
        self._early: dict[int, int] = {}  # answered ranges above it, first → last
        self._single: list[Confirm] = []  # answers that no cumulative one covers
        self._up_to = 0  # the number up to which a cumulative answer is due

    def told(self, dispositions: Iterable[PublishDisposition]) -> list[Confirm]:
        """The answers that come of it, in the order in which to send them: refusals before what covers them."""
        for _, first, last, outcome in dispositions:
            self._complete(first, last, accepted=isinstance(outcome, Accepted))
        ready, self._single = self._single, []
        if self._up_to:
            ready.append(Confirm(1, self._up_to, cumulative=True, accepted=True))
            self._up_to = 0
        return ready

    def _complete(self, first: int, last: int, *, accepted: bool) -> None:
        """Each number is completed once."""
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
