"""A queue takes what has a key once: what has the key of another message that came lately is dropped.

Its publisher is told that it is taken, as soon as that other message is safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from services.common.ledger.stages import DUPLICATE
from services.common.message.facts import Facts
from services.queue.machine.arrival import Arrival
from services.queue.machine.entrance import Refused
from services.queue.machine.entries import Entries
from services.queue.machine.entry import GONE
from services.queue.machine.features.window import Window
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.room import Room
from services.rpc import queue_pb2 as pb

Keys = Sequence[bytes | None]
"""Of messages of an arrival, one for each; None where one has none."""


class Entered(Protocol):
    """An Entrance, or what stands before one."""

    def publish(self, arrival: Arrival, now: int, *, reserved: bool) -> list[Refused]:
        """As Queue.publish says."""


class Once(ABC):
    """An Entrance before another one. What it answers has no reason where a message was there before."""

    __slots__ = ("_entries", "_next", "_room", "window")

    def __init__(self, following: Entered, entries: Entries, room: Room, window: Window) -> None:
        self._next = following
        self._entries = entries
        self._room = room
        self.window = window

    @abstractmethod
    def keys_of(self, arrival: Arrival) -> Keys | None:
        """None where none of it is to be looked at."""

    def stands_for(self, reason: pb.Reason.ValueType) -> bool:
        """Whether what was not taken for this reason is done with all the same."""
        return reason == pb.NONE

    def has_to_be_safe(self, facts: Facts) -> bool:
        """Whether what is only in memory does not stand for this message."""
        return self._entries.options.durable and facts.persistent

    def publish(self, arrival: Arrival, now: int, *, reserved: bool) -> list[Refused]:
        """As Queue.publish says."""
        if (keys := self.keys_of(arrival)) is None:
            return self._next.publish(arrival, now, reserved=reserved)
        found: list[Refused] = []
        for first, end in _without_repeats(keys):
            part = arrival if end - first == len(keys) else arrival.part(first, end)
            refused = self._publish(part, keys[first:end], now, reserved=reserved)
            found += [(first + at, count, reason) for at, count, reason in refused]
        self.window.tidy(now)
        self._entries.context.expect(self._entries.options.queue_id)
        return found

    def _publish(self, arrival: Arrival, keys: Keys, now: int, *, reserved: bool) -> list[Refused]:
        kept = self._kept(arrival, keys, now)
        try:
            if all(kept):
                refused = self._next.publish(arrival, now, reserved=reserved)
            else:
                refused = self._publish_some(arrival, kept, now, reserved=reserved)
        except Exception:
            self._give_up(arrival, keys, [(0, len(keys), pb.OTHER)])  # nobody is told that it was taken
            raise
        else:
            self._give_up(arrival, keys, refused)
            self._note(arrival, keys, refused)
        finally:
            self.window.settle()
        return refused

    def _kept(self, arrival: Arrival, keys: Keys, now: int) -> list[bool]:
        """Which messages have their keys."""
        take, safe = self.window.take, self.has_to_be_safe
        columns = zip(keys, arrival.uids, arrival.facts, strict=True)
        return [key is None or take(key, uid, now, safe=safe(facts)) for key, uid, facts in columns]

    # -------------------------------------------------------------- some of it was there before

    def _publish_some(self, arrival: Arrival, kept: list[bool], now: int, *, reserved: bool) -> list[Refused]:
        found: list[Refused] = []
        first = 0
        for new, group in groupby(kept):
            end = first + len(list(group))
            part = arrival.part(first, end)
            refused = self._next.publish(part, now, reserved=reserved) if new else self._drop(part, reserved=reserved)
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

    def _give_up(self, arrival: Arrival, keys: Keys, refused: list[Refused]) -> None:
        for first, count, reason in refused:
            for at in range(first, first + count) if not self.stands_for(reason) else ():
                if key := keys[at]:
                    self.window.give_up(key, arrival.uids[at])

    # -------------------------------------------------------------- the journal

    def _note(self, arrival: Arrival, keys: Keys, refused: list[Refused]) -> None:
        if not self._entries.options.durable or (arrival.place is not None and arrival.notes is None):
            return  # of a transaction that was prepared before a policy said this: its content is written already
        elsewhere = {at for first, count, _ in refused for at in range(first, first + count)}
        for at, key in enumerate(keys):
            place = arrival.notes[at] if arrival.notes else None
            its = key if at not in elsewhere and arrival.facts[at].persistent else None
            if its and self.window.is_new(its, arrival.uids[at]):
                note = self.window.note(its, arrival.uids[at], self.window.until(its))
                self.window.noted(its, place or self.enter(arrival, note))
            elif place:
                self._entries.context.draft.drop_notes([place])

    def enter(self, arrival: Arrival, note: Note) -> NotePlace:
        """Has the journal keep a note, with the messages."""
        return arrival.content.note(self._entries.options.partition, note)


def _without_repeats(keys: Keys) -> Iterator[tuple[int, int]]:
    """Parts in which no key comes twice: whether the first one is refused has to be known before the second."""
    first, seen = 0, set[bytes]()
    for at, key in enumerate(keys):
        if key in seen:
            yield first, at
            first, seen = at, set()
        if key is not None:
            seen.add(key)
    yield first, len(keys)
