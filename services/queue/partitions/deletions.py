"""Queues that the router is asked to delete: until it has answered, nobody is told that they are gone.

It may not be reached, or not do it, and then they stay with all that they have, bindings too.
"""

from __future__ import annotations

from collections.abc import Callable

from services.queue.partitions.partition import Awaited


class Deletions:
    """Of one process, by queue. `replay` carries out what has waited, once that may be done."""

    def __init__(self, replay: Callable[[Awaited], None]) -> None:
        self._replay = replay
        self._asked: dict[int, Awaited] = {}

    def __contains__(self, queue_id: int) -> bool:
        return queue_id in self._asked

    def begin(self, queue_id: int) -> None:
        """The router is about to be asked, or asked again."""
        self._asked.setdefault(queue_id, Awaited())

    def awaited(self, queue_id: int) -> Awaited | None:
        """What to wait for, before anything is said of the queue."""
        return self._asked.get(queue_id)

    def over(self, queue_id: int) -> None:
        """It is deleted, or stays: what has waited is carried out, or refused."""
        if awaited := self._asked.pop(queue_id, None):
            self._replay(awaited)

    def left(self, queue_id: int) -> None:
        """The queue is another process's now: what has waited is told so, whatever the router answers."""
        if awaited := self._asked.get(queue_id):
            awaited.replay()
