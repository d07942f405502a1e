"""A queue takes the dead letter of an entry once, though the entry's next owner sends it on again.

That one cannot know whether the owner that died had sent it, and sends it as another message; what says of which entry
it is (queue id, uid) is the same. So it is where that owner's answer was under way. Whoever sends it needs to do so no
longer than until the entry is off the journal: what is remembered is enough for what may be under way, and for as long
as an owner takes to follow another.
"""

from __future__ import annotations

from typing import Final

from services.common.message.facts import Facts
from services.queue.machine.arrival import Arrival
from services.queue.machine.entrance import Refused
from services.queue.machine.entries import Entries
from services.queue.machine.features.once import Entered, Keys, Once
from services.queue.machine.features.window import Span, Window
from services.queue.machine.room import Room
from services.rpc import queue_pb2 as pb

_SPAN: Final = Span("letters", most=20_000, life_ms=300_000, anew=True)


class LettersOnce(Once):
    """Of every queue: it keeps nothing until there is a letter."""

    __slots__ = ()

    def __init__(self, following: Entered, entries: Entries, room: Room, now: int) -> None:
        window = Window(_SPAN, entries.options.queue_id, entries.context, entries.holding, now)
        super().__init__(following, entries, room, window)

    def keys_of(self, arrival: Arrival) -> Keys | None:
        """Of dead letters."""
        return arrival.letters

    def has_to_be_safe(self, facts: Facts) -> bool:  # noqa: ARG002 - whatever they are
        """All letters of an entry are alike: where one is on disk, so is what says that it was here."""
        return False

    def _publish(self, arrival: Arrival, keys: Keys, now: int, *, reserved: bool) -> list[Refused]:
        """What a full queue passes on is taken: its owner alone knows by which policy it was full."""
        refused = super()._publish(arrival, keys, now, reserved=reserved)
        return [each for each in refused if not self._is_done(each, keys)]

    def _is_done(self, refused: Refused, keys: Keys) -> bool:
        first, count, reason = refused
        return reason != pb.NONE and self.stands_for(reason) and all(keys[first : first + count])

    def stands_for(self, reason: pb.Reason.ValueType) -> bool:
        """What a full queue passes on to its own dead-letter exchange is done with. That is in memory, as it is."""
        return reason == pb.NONE or (reason == pb.OVERFLOW and self._room.passes_on)
