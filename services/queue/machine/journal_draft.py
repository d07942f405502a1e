"""What a turn has for the journal, before it becomes a frame: contents with their entries, and what one partition
says of its entries. Pure accumulators: queues write into them, the journal writer empties them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from services.common.message.indexes import runs
from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry, JournalPart

_AS_ONE: Final = 10  # dequeued entries of a batch that take as long, about, as another batch


class Note(NamedTuple):
    """Something that a feature of a queue keeps: `value` is its affair alone."""

    queue_id: SlotId
    feature: str
    value: bytes


class NotePlace(NamedTuple):
    """Where a note stands in the journal."""

    batch: int
    at: int


class EntryDraft:
    """An entry batch in the making: run k puts messages `first[k]` .. `first[k] + count[k] - 1` on `queue_id[k]`, at
    `position[k]` and following. `notes` are a batch of their own, `notes_id`, since they outlive the messages.
    """

    __slots__ = ("id", "notes", "notes_id", "runs", "total")

    def __init__(self, batch: int) -> None:
        self.id = batch
        self.runs: list[tuple[SlotId, int, int, int]] = []
        self.total = 0
        self.notes: list[Note] = []
        self.notes_id = 0


class ContentDraft:
    """The messages of one publish batch as they may go to disk; `source` is theirs who writes them."""

    __slots__ = ("entries", "source", "take_id")

    def __init__(self, take_id: Callable[[], int], source: Any = None) -> None:  # noqa: ANN401 - passed through
        self.take_id = take_id
        self.source = source
        self.entries: dict[int, EntryDraft] = {}  # by partition

    def enlist(self, partition: int, queue_id: SlotId, indexes: Sequence[int], position: int) -> JournalPart:
        """Entries for the messages at these indexes, at `position` and following of their queue."""
        draft = self._draft_for(partition)
        part = JournalPart(draft.id, position - draft.total)
        draft.total += len(indexes)
        if len(indexes) == 1:
            draft.runs.append((queue_id, indexes[0], 1, position))
            return part
        for first, count in runs(indexes):
            draft.runs.append((queue_id, first, count, position))
            position += count
        return part

    def note(self, partition: int, note: Note) -> NotePlace:
        """Enters what a feature keeps, to be written with the messages."""
        draft = self._draft_for(partition)
        draft.notes_id = draft.notes_id or self.take_id()
        draft.notes.append(note)
        return NotePlace(draft.notes_id, len(draft.notes) - 1)

    def _draft_for(self, partition: int) -> EntryDraft:
        draft = self.entries.get(partition)
        if draft is None:
            draft = self.entries[partition] = EntryDraft(self.take_id())
        return draft


class Changes(NamedTuple):
    """What is written of a partition in one frame: dequeued indexes and how far was delivered, by batch, and notes."""

    dequeues: dict[int, list[int]]
    delivered: dict[int, int]
    notes_id: int
    notes: list[Note]


class PartitionDraft:
    """What changed for entries that are in the journal already."""

    __slots__ = ("delivered", "dequeues", "notes", "notes_id", "take_id", "wake")

    def __init__(self, wake: Callable[[], None], take_id: Callable[[], int]) -> None:
        """`wake` is called whenever something is added to an empty draft."""
        self.wake = wake
        self.take_id = take_id
        self.reset()

    def reset(self) -> None:
        """Begins anew; whoever took the values has them for itself."""
        self.dequeues: dict[int, list[int]] = {}
        self.delivered: dict[int, int] = {}
        self.notes: list[Note] = []
        self.notes_id = 0

    def take(self, most: int) -> Changes:
        """Dequeues, of about `most` batches at most, and all else: they are written now; the rest stays."""
        dequeues, taken = self.dequeues, dict[int, list[int]]()
        changes = Changes(taken, self.delivered, self.notes_id, self.notes)
        for batch, indexes in dequeues.items():
            if most <= 0:
                break
            taken[batch] = indexes
            most -= 1 + len(indexes) // _AS_ONE
        self.reset()
        if len(taken) < len(dequeues):
            for batch in taken:
                del dequeues[batch]
            self.dequeues = dequeues
        return changes

    def __bool__(self) -> bool:
        return bool(self.dequeues or self.delivered or self.notes)

    def dequeue(self, entries: list[Entry]) -> None:
        """These are done with."""
        dequeues = self.dequeues
        if not self:
            self.wake()
        indexes: list[int] = []
        last = None
        for entry in entries:
            part = entry.part
            if part is None:
                continue
            if part is not last:
                indexes = dequeues.setdefault(part.batch, [])
                last = part
            indexes.append(entry.position - part.base)

    def note(self, note: Note) -> NotePlace:
        """Enters what a feature keeps of entries that are in the journal."""
        if not self:
            self.wake()
        self.notes_id = self.notes_id or self.take_id()
        self.notes.append(note)
        return NotePlace(self.notes_id, len(self.notes) - 1)

    def drop_notes(self, places: Iterable[NotePlace]) -> None:
        """These are not kept any more."""
        for batch, index in places:
            if not self:
                self.wake()
            self.dequeues.setdefault(batch, []).append(index)

    def handed_out(self, entries: list[Entry]) -> None:
        """These were sent to a consumer that has to settle them."""
        delivered = self.delivered
        if not self:
            self.wake()
        last, highest = None, 0
        for entry in entries:
            part = entry.part
            if part is not last:
                if last is not None and delivered.get(last.batch, 0) < highest:
                    delivered[last.batch] = highest
                last, highest = part, 0
            if part is not None and highest <= entry.position - part.base:
                highest = entry.position - part.base + 1
        if last is not None and delivered.get(last.batch, 0) < highest:
            delivered[last.batch] = highest

    def handed_out_up_to(self, part: JournalPart, position: int) -> None:
        """The same for all entries of a part up to one."""
        if not self:
            self.wake()
        upto = position - part.base + 1
        if self.delivered.get(part.batch, 0) < upto:
            self.delivered[part.batch] = upto
