"""Queues that this process does not know: deleted ones, and new ones that other processes route to already.

Their messages go to any one queue process: it owns the queue, or turns them away, or says that the queue is gone. While
its stream lasts, the same process gets them all, so that nothing overtakes what another may still turn away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from services.common.topology.slots import SlotId

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink


class Unknown:
    """`links` are those to all members; `partition_of` gives None for a queue that is not known."""

    def __init__(self, links: Mapping[str, QueueLink], partition_of: Callable[[SlotId], int | None]) -> None:
        self._links = links
        self._partition_of = partition_of
        self._link: QueueLink | None = None
        self._asked = False  # something may be under way for an unknown queue

    def link(self) -> QueueLink | None:
        """The process that gets them, or None while none is connected."""
        if self._link is None or not self._link.up:
            self._link = next((link for link in self._links.values() if link.up), None)
        self._asked = True
        return self._link

    def asked(self, queue_id: SlotId) -> list[QueueLink]:
        """The links on which messages for a queue that has just become known are still unanswered."""
        if not self._asked:
            return []
        under_way = {
            link: {each for attempt in link.under_way() for each in attempt.queues} for link in self._links.values()
        }
        self._asked = any(self._partition_of(each) is None for queues in under_way.values() for each in queues)
        return [link for link, queues in under_way.items() if queue_id in queues]
