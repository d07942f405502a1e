"""Which consumer of a queue is the single active one (x-single-active-consumer), from owner to owner.

It is chosen when there is something to deliver, not as consumers come: those that come again after a change of owner
have all come by then. Gateways keep the numbers that an owner gives, and say them to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.queue.machine.consumers import Consumer

_TERM = 32  # bits in which one owner counts


class SingleActive:
    """Numbers grow from one owner to the next: `term` is the epoch of the partition, from 0 below 2**31."""

    def __init__(self, term: int) -> None:
        self.chosen: Consumer | None = None
        self._left: Consumer | None = None  # was it when its gateway went away, which may be back
        self._number = term << _TERM

    def came(self, consumer: Consumer) -> None:
        """A consumer that is new to all owners gets its age."""
        self._number = max(self._number, consumer.age, consumer.activated)
        consumer.age = consumer.age or self._next()

    def went(self, consumer: Consumer) -> None:
        """A consumer is not there any more."""
        if self.chosen is consumer:
            self.chosen = None
            self._left = consumer if consumer.link.broken else None

    def choose(self, consumers: Iterable[Consumer]) -> None:
        """Chooses one, unless there is one or the former one may come back yet: its gateway has another moment."""
        waiting = [consumer for consumer in consumers if not consumer.browse]
        if self.chosen is not None or not waiting:
            return
        first = self._back(waiting)
        if first is None and not self._is_awaited():
            first = min(waiting, key=_rank)
        if first is not None:
            self.chosen, self._left = first, None
            first.activated = self._next()
            first.link.activated(first)

    def _back(self, waiting: list[Consumer]) -> Consumer | None:
        left = self._left
        return next((consumer for consumer in waiting if consumer.age == left.age), None) if left else None

    def _is_awaited(self) -> bool:
        return self._left is not None and not self._left.link.over

    def _next(self) -> int:
        self._number += 1
        return self._number


def _rank(consumer: Consumer) -> tuple[int, bool, int]:
    """Who was it last; who holds something of an owner that did not say who was it; who came first."""
    return -consumer.activated, not consumer.holds, consumer.age
