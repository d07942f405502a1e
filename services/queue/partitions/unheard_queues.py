"""Queues that this process may not have heard of yet: its copy of the topology may lag behind the router's."""

from __future__ import annotations

from collections.abc import Callable

from services.common.topology.slots import SlotId
from services.queue.partitions.partition import Awaited


class UnheardQueues:
    """Requests for a queue that is not in the topology wait while the topology here may be incomplete.

    `has_place`: whether it is complete, so that a queue that is not in it does not exist. `replay` as in Deletions.
    """

    def __init__(self, has_place: Callable[[], bool], replay: Callable[[Awaited], None]) -> None:
        self._has_place = has_place
        self._replay = replay
        self._awaited: dict[SlotId, Awaited] = {}

    def awaited(self, queue_id: SlotId) -> Awaited | None:
        """What to wait for; None when the queue does not exist."""
        if self._has_place():
            return None
        return self._awaited.setdefault(queue_id, Awaited())

    def heard(self, queue_id: SlotId) -> None:
        """The queue is in the topology now: carries out what has waited for it."""
        if awaited := self._awaited.pop(queue_id, None):
            self._replay(awaited)

    def heard_all(self) -> None:
        """The topology is complete: the queues that are still awaited do not exist."""
        for queue_id in list(self._awaited):
            self.heard(queue_id)
