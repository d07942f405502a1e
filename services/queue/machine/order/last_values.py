"""Of messages with one key the last one is kept: an older one goes when a newer one comes, unless somebody has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from services.common.message.facts import Facts
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import GONE, Entry
from services.queue.machine.order.header_key import KeyOf
from services.queue.machine.order.ready import IsHeld
from services.queue.machine.order.sorted_entries import SortedEntries

_SPARE: Final = 1000  # keys that are remembered for nothing, at most, besides as many as there are messages
_LONGEST: Final = (
    64  # characters of a key that is remembered as it is: of others, which may have megabytes, a digest is
)

_Key: TypeAlias = str | bytes


class _Last(NamedTuple):
    """The latest message with a key: where it stands, and which it is."""

    position: int
    uid: int


class LastValues(SortedEntries):
    """In the order of arrival, with one available entry for each key; those without a key are all kept.

    `displaced` gathers what has left the queue for a newer one, until its owner takes it. What somebody holds stays
    his; when it comes back, and a newer one has come meanwhile, it is displaced. `is_held` says of a uid whether
    somebody holds it.
    """

    displaces = True
    by_arrival = True

    def __init__(self, key_of: KeyOf, is_held: IsHeld) -> None:
        super().__init__(attrgetter("position"))
        self._key_of = key_of
        self._is_held = is_held
        self._last: dict[_Key, _Last] = {}
        self._superseded: dict[int, int] = {}  # of what somebody holds: positions of older ones, with their uids
        self.displaced: list[Entry] = []

    def extend(self, entries: Iterable[Entry], size: int) -> None:  # noqa: ARG002 - of all, and some do not stay
        for entry in entries:
            if self._stays(entry):
                self._entries.add(entry)
                self.size += len(entry.message.body)
                self._came([entry])
        self._forget_some()

    def passed_by(self, arrival: Arrival, count: int, position: int) -> None:
        """Consumers got them at once; where that settled one, there is no last one of its key any more."""
        for index in range(count):
            self._passed_by(arrival.uids[index], position + index, arrival.facts[index], arrival.properties[index])

    def _passed_by(self, uid: int, position: int, facts: Facts, properties: bytes) -> None:
        if (key := self._remembered_as(facts, properties)) is None:
            return
        this = _Last(position, uid)
        last = self._last.pop(key, this)
        older, newer = sorted((last, this))
        if older != newer:
            self._supersede(older)
        if self._lives(newer):
            self._last[key] = newer

    def take_displaced(self) -> list[Entry]:
        """Since the last time."""
        displaced, self.displaced = self.displaced, []
        return displaced

    def _remembered_as(self, facts: Facts, properties: bytes) -> _Key | None:
        text = self._key_of(facts, properties)
        if text is None or len(text) <= _LONGEST:
            return text
        return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()

    def _stays(self, entry: Entry) -> bool:
        """Whether it is the last of its key; whatever it is the successor of is displaced."""
        key = self._remembered_as(entry.message.facts, entry.message.properties)
        if key is None:
            return True
        last = self._last.get(key)
        if last is not None and last.position > entry.position and self._lives(last):
            return self._displace(entry)
        if self._superseded.pop(entry.position, None) is not None:
            return self._displace(entry)
        if last is not None and last.position != entry.position:
            self._supersede(last)
        self._last[key] = _Last(entry.position, entry.message.uid)
        return True

    def _supersede(self, last: _Last) -> None:
        if (former := self._at(last.position)) is not None:
            self._entries.remove(former)
            self._left(former, GONE)
            self.displaced.append(former)
        elif self._is_held(last.uid):
            self._superseded[last.position] = last.uid

    def _displace(self, entry: Entry) -> bool:
        entry.state = GONE
        self.displaced.append(entry)
        return False

    def _lives(self, last: _Last) -> bool:
        return self._is_held(last.uid) or self._at(last.position) is not None

    def _at(self, position: int) -> Entry | None:
        """The available entry at a position."""
        found: Iterator[Entry] = self._entries.irange_key(position, position)
        return next(found, None)

    def _forget_some(self) -> None:
        """What is done with leaves nothing behind for long: nobody says when it is."""
        held = len(self._last) + len(self._superseded) - 2 * self.count
        if held <= _SPARE:
            return
        self._last = {key: last for key, last in self._last.items() if self._lives(last)}
        self._superseded = {place: uid for place, uid in self._superseded.items() if self._is_held(uid)}
