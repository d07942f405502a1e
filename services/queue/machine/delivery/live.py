"""Which consumers of a queue are live, where that is one (x-single-active-consumer), or few, from owner to owner.

They are chosen when there is something to deliver, not as consumers come: those that come again after a change of owner
have all come by then. Gateways keep the numbers that an owner gives, and say them to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.queue.machine.consumers import Consumer

_TERM = 32  # bits in which one owner counts


class LiveConsumers:
    """`most` at a time, which is at least one; the others wait, in the order in which they came.

    Numbers grow from one owner to the next: `term` is the epoch of the partition, from 0 below 2**31.
    """

    def __init__(self, term: int, most: int) -> None:
        self.most = most
        self.chosen: dict[Consumer, None] = {}
        self._left: list[Consumer] = []  # were live when their gateways went away, which may be back
        self._number = term << _TERM

    def came(self, consumer: Consumer) -> None:
        """A consumer that is new to all owners gets its age."""
        self._number = max(self._number, consumer.age, consumer.activated)
        consumer.age = consumer.age or self._next()

    def went(self, consumer: Consumer) -> None:
        """A consumer is not there any more."""
        if consumer in self.chosen:
            del self.chosen[consumer]
            self._left += [consumer] if consumer.link.broken else []

    def choose(self, consumers: Iterable[Consumer]) -> list[Consumer]:
        """Gives those that are live from now on: not in place of a former one that may come back yet."""
        fresh = self._fresh(consumers)
        back = {consumer.age for consumer in fresh}
        if fresh:
            self._left = [left for left in self._left if left.age not in back and not left.link.over]
        for consumer in fresh:
            self.chosen[consumer] = None
            consumer.activated = self._next()
            consumer.link.activated(consumer)
        return fresh

    def reserve(self, consumers: Iterable[Consumer]) -> set[Consumer]:
        """Those that would not be given what came now: they wait until another is gone. Browsers wait for nobody."""
        there = [consumer for consumer in consumers if not consumer.browse]
        return {*there}.difference(self.chosen, self._fresh(there))

    def _fresh(self, consumers: Iterable[Consumer]) -> list[Consumer]:
        waiting = [consumer for consumer in consumers if not consumer.browse and consumer not in self.chosen]
        if not waiting:
            return []
        ages = {left.age for left in self._left}
        fresh = [consumer for consumer in waiting if consumer.age in ages]
        back = {consumer.age for consumer in fresh}
        left = [each for each in self._left if each.age not in back and not each.link.over]
        others = sorted((each for each in waiting if each not in fresh), key=_rank)
        return fresh + others[: max(0, self.most - len(self.chosen) - len(left) - len(fresh))]

    def _next(self) -> int:
        self._number += 1
        return self._number


def _rank(consumer: Consumer) -> tuple[int, bool, int]:
    """Who was it last; who holds something of an owner that did not say who was it; who came first."""
    return -consumer.activated, not consumer.holds, consumer.age
