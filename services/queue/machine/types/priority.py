"""A queue with x-max-priority, or Broker-J's priorities: the highest first, in the order of arrival within one."""

from __future__ import annotations

from services.queue.machine.order.priority_list import PriorityList
from services.queue.machine.order.ready import Ready
from services.queue.machine.types.standard import StandardQueue


class PriorityQueue(StandardQueue):
    """See services.queue.machine.queue_type.Queue."""

    def create_ready(self) -> Ready:
        return PriorityList(self.options.max_priority + 1, self.options.lowest_priority)
