"""A queue in the order of arrival: first in, first out, and back to its place what was requeued."""

from __future__ import annotations

from services.queue.machine.options import QueueOptions
from services.queue.machine.order.entry_list import EntryList
from services.queue.machine.order.ready import IsHeld


def classic(options: QueueOptions, is_held: IsHeld) -> EntryList:  # noqa: ARG001 - as CreateReady says
    """See CreateReady."""
    return EntryList()
