"""Which queues are full: when messages take more memory than a queue process may use, those that hold the most of it.

A process's memory is shared by its queues, and a queue without consumers must not stop the others: publishers are held
back from queues that hold more than a fair share. Should they not be the ones that grow, the bar falls the further the
limit is exceeded; a quarter above it nothing more comes in. Consumers are never held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from services.common.topology.slots import SlotId

_RELIEVED = 0.8  # of the limit, below which no publisher is held back
_ABOVE = 0.25  # of the limit: a use that exceeds the limit by so much holds all publishers back
_STEP = 1 / 32  # of the limit, by which the use changes before another look is worth it
_SMALL = 1 / 32  # of the limit: a queue that holds less is not full, as long as another holds more
_STAYS = 0.8  # of the bar, below which a queue is not full any more


class Full(NamedTuple):
    """Where publishers have to wait."""

    everywhere: bool = False
    queue_ids: frozenset[SlotId] = frozenset()

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.queue_ids)


NOWHERE = Full()


class Gate:
    """Decides when memory use says so; cheap to ask when it does not."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.full = NOWHERE
        self._seen = 0

    def wants_look(self, used: int) -> bool:
        """Whether `look` may find another result than the last time."""
        if not self.full:
            return used > self.limit
        return used < self.limit * _RELIEVED or abs(used - self._seen) > self.limit * _STEP

    def look(self, used: int, holdings: Iterable[tuple[SlotId, int]]) -> bool:
        """Decides anew what is full; whether that has changed. `holdings` are bytes by queue."""
        before, self._seen = self.full, used
        if used < self.limit * _RELIEVED or (not before and used <= self.limit):
            self.full = NOWHERE
        else:
            self.full = full(used, self.limit, {queue: size for queue, size in holdings if size > 0}, before)
        return self.full != before


def full(used: int, limit: int, holdings: Mapping[SlotId, int], before: Full) -> Full:
    """Which queues are full when so many bytes are used."""
    over = max(0, used - limit) / (limit * _ABOVE)
    if over >= 1 or not holdings:
        return Full(everywhere=True)
    fair = sum(holdings.values()) / len(holdings)
    bar = max(fair, limit * _SMALL)
    if max(holdings.values()) < bar:
        bar = fair
    bar *= 1 - over
    return Full(
        queue_ids=frozenset(
            queue for queue, size in holdings.items() if size >= bar * (_STAYS if queue in before.queue_ids else 1)
        )
    )
