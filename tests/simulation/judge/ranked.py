"""Queues in another order than that of arrival give what is first in it; of last values there is one for each key.

Judged as queues are emptied, when nothing else moves: what some gateway may still have held comes back a little later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from tests.simulation.choices import LAST_VALUE, LEVELS, RANK, SORTED
from tests.simulation.history import Delivered, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_AT_ONCE = 0.2  # seconds


def key_of(sent: Sent) -> str | None:
    """What a message is sorted by, or the last of: a header's text; None without it."""
    return str(sent.headers[RANK]) if RANK in sent.headers else None


def _sorted(_value: Any) -> Callable[[Sent], Any]:
    return lambda sent: key_of(sent) or ""


def _priority(most: Any) -> Callable[[Sent], Any]:
    return lambda sent: -min(sent.priority, int(most))


def _levels(count: Any) -> Callable[[Sent], Any]:
    """So many levels, the middle one that of the priority that says nothing (JMS)."""
    lowest = max(0, 5 - (int(count) + 1) // 2)
    return lambda sent: -min(max(sent.priority - lowest, 0), int(count) - 1)


_RANKS: Final[Mapping[str, Callable[[Any], Callable[[Sent], Any]]]] = {
    SORTED: _sorted,
    "x-max-priority": _priority,
    LEVELS: _levels,
}


def misplaced(facts: Facts) -> Iterator[Violation]:
    """What comes first is first in the queue's order."""
    for queue, deliveries in _emptied(facts):
        rank = next((make(queue.arguments[name]) for name, make in _RANKS.items() if name in queue.arguments), None)
        for (one, _), (other, each) in pairwise(deliveries) if rank else ():
            if rank and rank(other) < rank(one):
                yield Violation(
                    "queues keep their order",
                    f"{told(other)}, {rank(other)!r}, came behind {one.id}, {rank(one)!r}, as {queue.name} was emptied"
                    f" by {each.channel.connection.client}",
                )


def doubled(facts: Facts) -> Iterator[Violation]:
    """A last value queue has one message of each key."""
    for queue, deliveries in _emptied(facts):
        seen: dict[str, Sent] = {}
        for sent, _ in deliveries if LAST_VALUE in queue.arguments else ():
            if (key := key_of(sent)) is None:
                continue
            if other := seen.get(key):
                yield Violation(
                    "the last of a key is kept", f"{told(sent)} was in {queue.name} beside {other.id}, both of {key!r}"
                )
            seen[key] = sent


def _emptied(facts: Facts) -> Iterator[tuple[Queue, list[tuple[Sent, Delivered]]]]:
    """What each consumer got that emptied a queue."""
    found: dict[int, list[Delivered]] = {}
    for each in facts.taken:
        if each.consumer and each.consumer.tag == "drain":
            found.setdefault(id(each.consumer), []).append(each)
    for deliveries in found.values():
        first, sent = deliveries[0], facts.history.sent
        queue = facts.queues.get((first.host, first.queue))
        soon = [
            each for each in deliveries if each.time < first.time + _AT_ONCE and not each.deaths and each.id in sent
        ]
        if queue:
            yield queue, [(sent[each.id], each) for each in soon]
