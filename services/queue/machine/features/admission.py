"""What comes into a queue: features look first at what publishers, or owners of dead letters, may send again."""

from __future__ import annotations

from collections.abc import Iterator

from services.queue.machine.arrival import Arrival
from services.queue.machine.entrance import Refused
from services.queue.machine.entries import Entries
from services.queue.machine.features.letters import LettersOnce
from services.queue.machine.features.once import Entered
from services.queue.machine.features.published_once import PublishedOnce
from services.queue.machine.features.window import Window
from services.queue.machine.room import Room


class Admission:
    """Before the entrance of one queue."""

    __slots__ = ("_entrance", "_entries", "_letters", "_once", "_plain", "_room")

    def __init__(self, entrance: Entered, entries: Entries, room: Room, now: int) -> None:
        self._plain = entrance
        self._entries = entries
        self._room = room
        self._once: PublishedOnce | None = None
        self._letters = LettersOnce(entrance, entries, room, now)
        self.heed(now)

    def heed(self, now: int) -> None:
        """What its arguments and policies say now."""
        options = self._entries.options
        if options.once:
            self._once = self._once or PublishedOnce(self._plain, self._entries, self._room, now)
        if self._once:
            self._once.adopt(options)
        self._entrance: Entered = self._once if self._once and options.once else self._plain

    def publish(self, arrival: Arrival, now: int, *, reserved: bool) -> list[Refused]:
        """As Queue.publish says."""
        if arrival.notes and not self._entries.options.once:  # it was prepared when keys were kept
            self._entries.context.draft.drop_notes([place for place in arrival.notes if place])
        entrance = self._entrance if arrival.published else self._letters
        return entrance.publish(arrival, now, reserved=reserved)

    def stage(self, arrival: Arrival, now: int) -> None:
        """As Queue.stage says."""
        if self._once and self._entries.options.once:
            self._once.stage(arrival, now)

    def windows(self) -> Iterator[Window]:
        """What is remembered of what came lately."""
        yield self._letters.window
        if self._once:
            yield self._once.window
