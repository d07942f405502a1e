"""Broker-J's sorted queue: by the text of a header, those without it first; ties by arrival."""

from __future__ import annotations

from services.queue.machine.entry import Entry
from services.queue.machine.order.header_key import by_header
from services.queue.machine.order.ready import Ready
from services.queue.machine.order.sorted_entries import SortedEntries
from services.queue.machine.types.standard import StandardQueue


class SortedQueue(StandardQueue):
    """See services.queue.machine.queue_type.Queue."""

    def create_ready(self) -> Ready:
        key_of = by_header(self.options.sort_key or "")

        def place(entry: Entry) -> tuple[str, int]:
            # Null sorts first, and so does what is empty.
            return key_of(entry.message.facts, entry.message.properties) or "", entry.position

        return SortedEntries(place)
