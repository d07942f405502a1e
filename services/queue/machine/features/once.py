"""A queue takes what its publishers send it once: what has the key of another message that came lately is dropped.

Its publisher is told that it is taken, as soon as that other message is safe. Dead letters, and what is moved by hand,
come in whatever their keys: nobody would have them else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from services.common.ledger.stages import DUPLICATE
from services.queue.machine.arrival import Arrival
from services.queue.machine.entrance import Entrance, Refused
from services.queue.machine.entries import Entries
from services.queue.machine.entry import GONE
from services.queue.machine.features.keys import key_of
from services.queue.machine.features.window import Window
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.room import Room
from services.rpc import queue_pb2 as pb

_Keys = Sequence[bytes | None]


class Once:
    """An Entrance before another one. What it answers has no reason where a message was there before."""

    __slots__ = ("_entrance", "_entries", "_room", "window")

    def __init__(self, entrance: Entrance, entries: Entries, room: Room) -> None:
        self._entrance = entrance
        self._entries = entries
        self._room = room
        self.window = Window(entries.options, entries.context, entries.holding)

    def publish(self, arrival: Arrival, now: int, *, reserved: bool) -> list[Refused]:
        """As Queue.publish says."""
        if not arrival.published:
            return self._entrance.publish(arrival, now, reserved=reserved)
        keys, found = _keys_of(arrival), list[Refused]()
        for first, end in _without_repeats(keys):
            part = arrival if end - first == len(keys) else arrival.part(first, end)
            refused = self._publish(part, keys[first:end], now, reserved=reserved)
            found += [(first + at, count, reason) for at, count, reason in refused]
        self.window.tidy(now)
        self._entries.context.expect(self._entries.options.queue_id)
        return found

    def _publish(self, arrival: Arrival, keys: _Keys, now: int, *, reserved: bool) -> list[Refused]:
        kept = self._kept(arrival, keys, now)
        try:
            if all(kept):
                refused = self._entrance.publish(arrival, now, reserved=reserved)
            else:
                refused = self._publish_some(arrival, kept, now, reserved=reserved)
        except Exception:
            self._give_up(arrival, keys, [(0, len(keys), pb.OTHER)])  # nobody is told that it was taken
            raise
        self._give_up(arrival, keys, refused)
        self._note(arrival, keys)
        return refused

    def _kept(self, arrival: Arrival, keys: _Keys, now: int) -> list[bool]:
        """Which messages have their keys. What is only in memory does not stand for one that has to be on disk."""
        durable, take = self._entries.options.durable, self.window.take
        columns = zip(keys, arrival.uids, arrival.facts, strict=True)
        return [key is None or take(key, uid, now, safe=durable and facts.persistent) for key, uid, facts in columns]

    def stage(self, arrival: Arrival, now: int) -> None:
        """Notes for the journal what there will be if a transaction is committed, which begins now."""
        if not arrival.published or not self._entries.options.durable:
            return
        until = now + self._entries.options.once_ms
        columns = zip(_keys_of(arrival), arrival.uids, arrival.facts, strict=True)
        arrival.notes = [
            self._enter(arrival, self.window.note(key, uid, until)) if key and facts.persistent else None
            for key, uid, facts in columns
        ]

    # -------------------------------------------------------------- some of it was there before

    def _publish_some(self, arrival: Arrival, kept: list[bool], now: int, *, reserved: bool) -> list[Refused]:
        found: list[Refused] = []
        first = 0
        for new, group in groupby(kept):
            end = first + len(list(group))
            part = arrival.part(first, end)
            refused = (
                self._entrance.publish(part, now, reserved=reserved) if new else self._drop(part, reserved=reserved)
            )
            found += [(first + at, count, reason) for at, count, reason in refused]
            first = end
        return found

    def _drop(self, part: Arrival, *, reserved: bool) -> list[Refused]:
        its = self._entries
        if reserved:
            self._room.unreserve(len(part), sum(map(len, part.bodies)))
        its.record.dropped(part.span(0, len(part)), DUPLICATE)
        if part.parts is not None:  # the transaction has put it into the journal
            its.forget(its.create(part, 0, len(part), GONE, durable=False))
        return [(0, len(part), pb.NONE)]

    def _give_up(self, arrival: Arrival, keys: _Keys, refused: list[Refused]) -> None:
        for first, count, reason in refused:
            for at in range(first, first + count) if reason != pb.NONE else ():
                if key := keys[at]:
                    self.window.give_up(key, arrival.uids[at])

    # -------------------------------------------------------------- the journal

    def _note(self, arrival: Arrival, keys: _Keys) -> None:
        if not self._entries.options.durable or (arrival.place is not None and arrival.notes is None):
            return  # of a transaction that was prepared before a policy said this: its content is written already
        for at, key in enumerate(keys):
            place = arrival.notes[at] if arrival.notes else None
            if key and arrival.facts[at].persistent and self.window.is_new(key, arrival.uids[at]):
                note = self.window.note(key, arrival.uids[at], self.window.until(key))
                self.window.noted(key, place or self._enter(arrival, note))
            elif place:
                self._entries.context.draft.drop_notes([place])

    def _enter(self, arrival: Arrival, note: Note) -> NotePlace:
        return arrival.content.note(self._entries.options.partition, note)


def _without_repeats(keys: _Keys) -> Iterator[tuple[int, int]]:
    """Parts in which no key comes twice: whether the first one is refused has to be known before the second."""
    first, seen = 0, set[bytes]()
    for at, key in enumerate(keys):
        if key in seen:
            yield first, at
            first, seen = at, set()
        if key is not None:
            seen.add(key)
    yield first, len(keys)


def _keys_of(arrival: Arrival) -> _Keys:
    return [key_of(*each) for each in zip(arrival.facts, arrival.properties, strict=True)]
