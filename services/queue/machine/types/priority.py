"""A queue with x-max-priority, or Broker-J's priorities: the highest first, in the order of arrival within one."""

from __future__ import annotations

from services.queue.machine.options import QueueOptions
from services.queue.machine.order.priority_list import PriorityList
from services.queue.machine.order.ready import IsHeld


def priority(options: QueueOptions, is_held: IsHeld) -> PriorityList:  # noqa: ARG001 - as CreateReady says
    """See CreateReady."""
    return PriorityList(options.max_priority + 1, options.lowest_priority)
