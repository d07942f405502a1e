"""Deliveries of one session that wait for the socket, or for the client's flow, in fair turns of consumers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.common.message.facts import Facts
from services.common.message.weight import weight

if TYPE_CHECKING:
    from services.gateway.sessions.consumer import Consumer


@dataclass(slots=True)
class Arrived:
    """Deliveries for one consumer as the queue process sent them, columns."""

    attempts: int  # before, that failed
    uids: Sequence[int]
    facts: Sequence[Facts]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]
    size: int  # of properties and bodies: what the queue process has taken from the consumer's credit
    acquired: int = 0  # before, those that only came back too; 0 where clients are not told

    def split(self, count: int) -> tuple[Arrived, Arrived]:
        """The first `count` deliveries, and the others."""
        return self._slice(0, count), self._slice(count, len(self.bodies))

    def _slice(self, first: int, end: int) -> Arrived:
        properties, bodies = self.properties[first:end], self.bodies[first:end]
        return Arrived(
            self.attempts,
            self.uids[first:end],
            self.facts[first:end],
            properties,
            bodies,
            weight(properties, bodies),
            self.acquired,
        )


def part(those: Iterable[Arrived], count: int) -> tuple[list[Arrived], list[Arrived]]:
    """The first `count` deliveries of all, and the others."""
    first, others = list[Arrived](), list[Arrived]()
    for each in those:
        length = len(each.bodies)
        if 0 < count < length:
            within, each = each.split(count)  # noqa: PLW2901 - what is left of it
            first.append(within)
            others.append(each)
        else:
            (first if length <= count else others).append(each)
        count = max(count - length, 0)
    return first, others


class Backlog:
    """Deliveries by consumer; the consumer whose turn is next comes first."""

    def __init__(self) -> None:
        self._kept: dict[Consumer, deque[Arrived]] = {}
        self._held: dict[Consumer, list[Arrived]] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, consumer: Consumer, arrived: Arrived) -> None:
        """Keeps deliveries behind what is kept for the same consumer."""
        self._kept.setdefault(consumer, deque()).append(arrived)

    def hold(self, consumer: Consumer, arrived: Arrived) -> None:
        """Keeps deliveries for a consumer that its client does not know yet, or has no credit for, until `release`."""
        self._held.setdefault(consumer, []).append(arrived)

    def release(self, consumer: Consumer) -> None:
        """Lets what was held take its turns, before what came for the consumer later."""
        if held := self._held.pop(consumer, None):
            self._kept.setdefault(consumer, deque()).extendleft(reversed(held))

    def next(self, size: int) -> tuple[Consumer, Arrived]:
        """Takes about `size` bytes, one delivery at least, of the consumer that is next in turn."""
        consumer = next(iter(self._kept))
        waiting = self._kept.pop(consumer)
        arrived = waiting.popleft()
        if arrived.size > size and len(arrived.bodies) > 1:
            arrived, rest = arrived.split(max(1, len(arrived.bodies) * size // arrived.size))
            waiting.appendleft(rest)
        if waiting:
            self._kept[consumer] = waiting
        return consumer, arrived

    def take(self, consumer: Consumer) -> list[Arrived]:
        """Takes out everything of one consumer."""
        return [*self._held.pop(consumer, ()), *self._kept.pop(consumer, ())]

    def take_all(self) -> list[tuple[Consumer, Arrived]]:
        """Takes out everything."""
        kept = [*self._held.items(), *self._kept.items()]
        self._held, self._kept = {}, {}
        return [(consumer, arrived) for consumer, its in kept for arrived in its]

    def kept(self, consumer: Consumer) -> tuple[int, int]:
        """How many deliveries and bytes wait for a consumer."""
        waiting = [*self._held.get(consumer, ()), *self._kept.get(consumer, ())]
        return sum(len(arrived.bodies) for arrived in waiting), sum(arrived.size for arrived in waiting)
