"""Gateways that have lost their place by silence, though their stream did not break: they may stand still.

Nothing waits for them any more, but they go on with the clients that they had. Owners of queues that do not know them
wait to hear what those hold: so they are on record for a while. One whose stream broke has died, and its clients know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from services.common.clock import Clock
from services.common.topology.records import RecordKey
from services.common.watchers import SILENT_KIND
from services.router.topology.effects import Effects
from services.router.watchers import ExpectedWatcher, place_record

_KEPT: Final = 10.0  # seconds: for no longer does an owner wait


class Silent:
    """`clock` is monotonic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}  # by member

    def expect(self, members: Iterable[str]) -> None:
        """Those that a former router has put on record."""
        self._until.update(dict.fromkeys(members, self._clock() + _KEPT))

    def fell(self, places: Iterable[ExpectedWatcher], effects: Effects) -> None:
        """These have been silent for too long, and their streams did not break."""
        for place in places:
            if place.role == "gateway":
                effects.records[_key(place.member)] = place_record(place)._replace(transient=True)
                self.expect([place.member])

    def over(self) -> list[str]:
        """Those that have been there for long enough."""
        now = self._clock()
        return [member for member, until in self._until.items() if until <= now]

    def take_off(self, members: Iterable[str], effects: Effects) -> None:
        """They are on record no more, once the effects are kept: a change may be decided twice, or fail."""
        for member in members:
            if member in self._until:
                effects.records[_key(member)] = None

    def forget(self, members: Iterable[str]) -> None:
        """That is kept."""
        for member in members:
            self._until.pop(member, None)


def _key(member: str) -> RecordKey:
    return RecordKey(SILENT_KIND, member)
