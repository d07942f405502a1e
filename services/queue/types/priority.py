"""A queue with x-max-priority, or Broker-J's priorities: the highest first, in the order of arrival within one."""

from __future__ import annotations

from services.queue.priority_list import PriorityList
from services.queue.ready import Ready
from services.queue.types.standard import StandardQueue


class PriorityQueue(StandardQueue):
    """See services.queue.queue_type.Queue."""

    def create_ready(self) -> Ready:
        return PriorityList(self.options.max_priority + 1, self.options.lowest_priority)
