"""Queues whose publishers are held back because more waits in them than they want (`machine/flow.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.topology.slots import SlotId

if TYPE_CHECKING:
    from services.queue.machine.queue import Queue


class Overfull:
    """Of a process. Nobody looks at queues in which no more waits, and that are not overfull."""

    __slots__ = ("_came", "queue_ids")

    def __init__(self) -> None:
        self.queue_ids: frozenset[SlotId] = frozenset()
        self._came: set[SlotId] = set()

    def came(self, queue_id: SlotId) -> None:
        """Something has come to it, or come back, which may be too much."""
        self._came.add(queue_id)

    def look(self, queues: Mapping[SlotId, Queue]) -> bool:
        """Whether it has changed which are; those that are not here any more are their next owner's affair."""
        if not self._came and not self.queue_ids:
            return False
        looked_at, self._came = self._came | self.queue_ids, set()
        before, self.queue_ids = self.queue_ids, frozenset(each for each in looked_at if _is_overfull(queues.get(each)))
        return self.queue_ids != before


def _is_overfull(queue: Queue | None) -> bool:
    return queue is not None and queue.flow is not None and queue.flow.is_overfull()
