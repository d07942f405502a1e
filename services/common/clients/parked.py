"""Attempts that wait until their partition has an owner that can be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from services.common.clients.outbound import Attempt
from services.common.topology.slots import SlotId

UNKNOWN: Final = -1
"""Stands in for the partition of a queue that is not known, or no longer known."""

_Key = tuple[int, int, int]


class Parked:
    """Attempts by partition; `size` is the bytes of all of them."""

    def __init__(self) -> None:
        self._attempts: dict[int, dict[_Key, Attempt]] = {}
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._attempts)

    def __contains__(self, partition: int) -> bool:
        return partition in self._attempts

    def __iter__(self) -> Iterator[Attempt]:
        for its in self._attempts.values():
            yield from its.values()

    def add(self, partition: int, attempt: Attempt) -> None:
        """Keeps an attempt. Messages refused queue by queue become one attempt again, to be sent once."""
        its, uids = self._attempts.setdefault(partition, {}), attempt.messages.uids
        key = id(attempt.delivery), uids[0], len(uids)
        if (other := its.get(key)) is None:
            its[key] = attempt
        elif other.joins(attempt):
            return
        else:
            its[id(attempt), -1, -1] = attempt
        self.size += attempt.size

    def take_known(self, partition_of: Callable[[SlotId], int | None]) -> list[Attempt]:
        """Takes out what waits for a queue that was unknown and is known now."""
        waiting = self._attempts.pop(UNKNOWN, {})
        taken = {
            key: attempt
            for key, attempt in waiting.items()
            if any(partition_of(queue_id) is not None for queue_id in attempt.queues)
        }
        if left := {key: attempt for key, attempt in waiting.items() if key not in taken}:
            self._attempts[UNKNOWN] = left
        self.size -= sum(attempt.size for attempt in taken.values())
        return list(taken.values())

    def take(self) -> Iterator[tuple[int, list[Attempt]]]:
        """Takes out everything: for each partition its attempts in the order of their uids."""
        attempts, self._attempts, self.size = self._attempts, {}, 0
        for partition, its in attempts.items():
            yield partition, sorted(its.values(), key=lambda attempt: attempt.messages.uids[0])
