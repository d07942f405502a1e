"""Broker-J's sorted queue: by the text of a header, those without it first; ties by arrival."""

from __future__ import annotations

from services.queue.machine.entry import Entry
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.header_key import by_header
from services.queue.machine.order.ready import IsHeld
from services.queue.machine.order.sorted_entries import SortedEntries


def sorted_by_header(options: QueueOptions, is_held: IsHeld) -> SortedEntries:  # noqa: ARG001 - as CreateReady says
    """See CreateReady."""
    key_of = by_header(options.sort_key or "")

    def place(entry: Entry) -> tuple[str, int]:
        # Null sorts first, and so does what is empty.
        return key_of(entry.message.facts, entry.message.properties) or "", entry.position

    return SortedEntries(place)
