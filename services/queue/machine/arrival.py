"""Messages of a batch on their way to one queue of this process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from services.common.ledger.uid_ranges import span
from services.common.message.alike import objects
from services.common.message.facts import Facts
from services.common.message.indexes import pick
from services.common.message.weight import weight
from services.queue.machine.body import Body
from services.queue.machine.entry import JournalPart
from services.queue.machine.journal_draft import ContentDraft, NotePlace
from services.queue.machine.message import Message

if TYPE_CHECKING:
    from services.queue.machine.columns import Columns
    from services.queue.machine.options import QueueOptions

Parts = Sequence[JournalPart | None]

_PERSISTENT = attrgetter("persistent")


class Arrival:
    """Columns: message i has `uids[i]`, `facts[i]`, `properties[i]` and `bodies[i]`, and is number `indexes[i]` of its
    content. `time_ms` is when they were received. Messages become objects when a queue has to keep them, and then once.

    `expires` is when each of them does (Unix ms, or 0), None when none does; `times_differ`: some say it themselves.
    Those of a transaction have had their `place` in the queue, `parts` in the journal, and `notes` of features there,
    since it was prepared.
    """

    __slots__ = (
        "_columns",
        "_objects",
        "_weight",
        "bodies",
        "content",
        "expires",
        "facts",
        "immediate",
        "indexes",
        "notes",
        "parts",
        "place",
        "properties",
        "time_ms",
        "times_differ",
        "uids",
    )

    def __init__(
        self,
        columns: Columns,
        indexes: Sequence[int],
        time_ms: int,
        content: ContentDraft,
        *,
        immediate: bool = False,
    ) -> None:
        self.uids: Sequence[int] = pick(columns.uids, indexes)
        self.facts: Sequence[Facts] = pick(columns.facts, indexes)
        self.properties: Sequence[bytes] = pick(columns.properties, indexes)
        self.bodies: Sequence[Body] = pick(columns.bodies, indexes)
        self.indexes = indexes
        self.time_ms = time_ms
        self.content = content
        self.immediate = immediate
        self.expires: list[int] | None = None
        self.times_differ = False
        self.place: int | None = None
        self.parts: Parts | None = None
        self.notes: Sequence[NotePlace | None] | None = None
        self._columns = columns
        self._objects = list(objects(self.facts).values())
        self._weight: int | None = None

    def __len__(self) -> int:
        return len(self.uids)

    def part(self, first: int, end: int) -> Arrival:
        """The messages `first` to `end - 1` by themselves."""
        part = Arrival(self._columns, self.indexes[first:end], self.time_ms, self.content, immediate=self.immediate)
        if self.place is not None:
            part.place = self.place + first
            part.parts = self.parts and self.parts[first:end]
            part.notes = self.notes and self.notes[first:end]
        return part

    @property
    def published(self) -> bool:
        """Whether clients have published them: they are no dead letters, nor moved by hand."""
        return self._columns.published

    @property
    def some_are_shared(self) -> bool:
        """Whether some messages of the batch are for more queues than one."""
        return self._columns.some_are_shared

    @property
    def some_are_persistent(self) -> bool:
        """Whether any of them is."""
        return any(map(_PERSISTENT, self._objects))

    @property
    def letters(self) -> Sequence[bytes | None] | None:
        """What says of which entry each is the dead letter, None for one that is none; None where none is."""
        return self._columns.letters and pick(self._columns.letters, self.indexes)

    def expire_by(self, options: QueueOptions) -> bool:
        """Works out when they expire, by their own time to live and their queue's; whether any of them does."""
        own = {facts.ttl_ms for facts in self._objects}
        if options.ttl_ms is None and own == {None}:
            return False
        lives = {ttl: options.lifetime(ttl) for ttl in own}
        at = {ttl: 0 if its is None else self.time_ms + its for ttl, its in lives.items()}
        self.expires = [at[facts.ttl_ms] for facts in self.facts]
        self.times_differ = own != {None}
        return True

    def weight(self, first: int, end: int) -> int:
        """Bytes of properties and bodies of the messages from `first` to `end - 1`."""
        if end - first == len(self.bodies):
            if self._weight is None:  # asked for by who has credit for it, and by who keeps it
                self._weight = weight(self.properties, self.bodies)
            return self._weight
        return weight(self.properties[first:end], self.bodies[first:end])

    def kept(self, first: int, end: int) -> int:
        """Bytes of them in memory as long as they are: their routing keys too, as Message.kept says."""
        objects, facts = self._objects, self.facts
        if len(objects) == 1:
            return self.weight(first, end) + (end - first) * len(objects[0].routing_key)
        return self.weight(first, end) + sum([len(each.routing_key) for each in facts[first:end]])

    def span(self, first: int, end: int) -> Sequence[int]:
        """The uids of the messages from `first` to `end - 1`, as a range where they are consecutive."""
        return span(self.uids, first, end - first)

    def messages(self, first: int, end: int) -> list[Message]:
        """The messages `first` to `end - 1`; the same objects for every queue that asks."""
        if self._columns.some_are_shared:
            return list(map(self._columns.message, self.indexes[first:end]))
        own = slice(first, end)
        columns = self.uids[own], self.facts[own], self.properties[own], self.bodies[own]
        return list(map(Message, *columns, repeat(self.time_ms)))

    def enlist(self, options: QueueOptions, first: int, end: int, position: int) -> Parts:
        """Enters what is persistent of messages `first` to `end - 1` for the journal, as entries of a queue at
        `position` and following. Gives where each stands there.
        """
        kinds = set(map(_PERSISTENT, self._objects))
        if len(kinds) == 1:
            if not kinds.pop():
                return (None,) * (end - first)
            return (self._enlist(options, first, end, position),) * (end - first)
        parts: list[JournalPart | None] = []
        for persistent, group in groupby(map(_PERSISTENT, self.facts[first:end])):
            start, count = first + len(parts), len(list(group))
            place = position + len(parts)
            part = self._enlist(options, start, start + count, place) if persistent else None
            parts += [part] * count
        return parts

    def _enlist(self, options: QueueOptions, first: int, end: int, position: int) -> JournalPart:
        return self.content.enlist(options.partition, options.queue_id, self.indexes[first:end], position)
