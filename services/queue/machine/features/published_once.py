"""A queue takes what its publishers send it once, by what they tell messages from others by.

Dead letters, and what is moved by hand, come in whatever their keys: nobody would have them else.
"""

from __future__ import annotations

from typing import Final

from services.queue.machine.arrival import Arrival
from services.queue.machine.entries import Entries
from services.queue.machine.features.keys import key_of
from services.queue.machine.features.once import Entered, Keys, Once
from services.queue.machine.features.window import Span, Window
from services.queue.machine.options import QueueOptions
from services.queue.machine.room import Room

FEATURE: Final = "deduplication"


class PublishedOnce(Once):
    """Of a queue that was declared so."""

    __slots__ = ()

    def __init__(self, following: Entered, entries: Entries, room: Room, now: int) -> None:
        options = entries.options
        window = Window(_span(options), options.queue_id, entries.context, entries.holding, now)
        super().__init__(following, entries, room, window)

    def adopt(self, options: QueueOptions) -> None:
        """Policies say something else."""
        self.window.adopt(_span(options))

    def keys_of(self, arrival: Arrival) -> Keys | None:
        """Of what clients have published."""
        return _keys_of(arrival) if arrival.published else None

    def stage(self, arrival: Arrival, now: int) -> None:
        """Notes for the journal what there will be if a transaction is committed, which begins now."""
        if not arrival.published or not self._entries.options.durable:
            return
        until = self.window.end_of(now)
        columns = zip(_keys_of(arrival), arrival.uids, arrival.facts, strict=True)
        arrival.notes = [
            self.enter(arrival, self.window.note(key, uid, until)) if key and facts.persistent else None
            for key, uid, facts in columns
        ]


def _span(options: QueueOptions) -> Span:
    return Span(FEATURE, options.once_most if options.once else 0, options.once_ms)


def _keys_of(arrival: Arrival) -> Keys:
    return [key_of(*each) for each in zip(arrival.facts, arrival.properties, strict=True)]
