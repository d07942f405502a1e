"""Queues that this process has not heard of yet: the router does not wait for who has no place in the topology."""

from __future__ import annotations

from collections.abc import Callable

from services.queue.partitions.partition import Awaited


class UnheardQueues:
    """What is for a queue that is not in the topology waits while the topology may not be all there is.

    `has_place`: whether it is, so that a queue that is not in it does not exist. `replay` as in Deletions.
    """

    def __init__(self, has_place: Callable[[], bool], replay: Callable[[Awaited], None]) -> None:
        self._has_place = has_place
        self._replay = replay
        self._awaited: dict[int, Awaited] = {}

    def awaited(self, queue_id: int) -> Awaited | None:
        """What to wait for; None when there is no such queue."""
        if self._has_place():
            return None
        return self._awaited.setdefault(queue_id, Awaited())

    def heard(self, queue_id: int) -> None:
        """It is in the topology now: what has waited for it is carried out."""
        if awaited := self._awaited.pop(queue_id, None):
            self._replay(awaited)

    def heard_all(self) -> None:
        """The topology is all there is: the queues that are still awaited do not exist."""
        for queue_id in list(self._awaited):
            self.heard(queue_id)
