"""Queues that the router is asked to delete: until it has answered, no client is told that they are gone.

The router may not be reachable, or may refuse; then the queues stay with their messages and bindings.
"""

from __future__ import annotations

from collections.abc import Callable

from services.common.topology.slots import SlotId
from services.queue.partitions.partition import Awaited


class Deletions:
    """The deletions of one process, by queue. `replay` carries out what has waited, once that may be done."""

    def __init__(self, replay: Callable[[Awaited], None]) -> None:
        self._replay = replay
        self._asked: dict[SlotId, Awaited] = {}

    def __contains__(self, queue_id: SlotId) -> bool:
        return queue_id in self._asked

    def begin(self, queue_id: SlotId) -> None:
        """The router is about to be asked, or asked again."""
        self._asked.setdefault(queue_id, Awaited())

    def awaited(self, queue_id: SlotId) -> Awaited | None:
        """What to wait for before a request for the queue is answered; None when it is not being deleted."""
        return self._asked.get(queue_id)

    def over(self, queue_id: SlotId) -> None:
        """The queue is deleted, or stays: carries out, or refuses, what has waited."""
        if awaited := self._asked.pop(queue_id, None):
            self._replay(awaited)

    def left(self, queue_id: SlotId) -> None:
        """Another process owns the queue now: what has waited is refused, without waiting for the router's answer."""
        if awaited := self._asked.get(queue_id):
            awaited.replay()
