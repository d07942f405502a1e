"""All data of the store in memory, except the columns of contents: for these it has their places in the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from services.store.provider import Changes, EntryRow, LiveRow
from services.store.providers.jetstream_encoding import ContentPosition, size_at
from services.store.providers.jetstream_space import Space
from services.store.providers.memory import MemoryProvider
from services.store.snapshot import Row, Table

_AT_ONCE = 10_000  # rows that are looked at in one turn of the loop

_AGED = ("floors", "writers", "outcomes")


class Index(MemoryProvider):
    """A MemoryProvider whose contents are packed Places; changes that are committed to it have these too.

    The stream has more than the index: what the index forgets by age it forgets again after a start.
    """

    def __init__(self) -> None:
        super().__init__(Path())
        self._origin = self._incarnation = 0
        self.space = Space()
        # partition -> batches, as they came: nearly in order, so that a million are sorted at once.
        self._of: dict[int, dict[int, None]] = {}

    def _commit_journal(self, changes: Changes) -> None:
        self._count(changes)
        for number in changes.dead_batches:
            if row := self._entries.get(number):
                self._of[row.partition].pop(number, None)
        for number, row in changes.entries.items():
            self._of.setdefault(row.partition, {})[number] = None
        super()._commit_journal(changes)

    def _count(self, changes: Changes) -> None:
        put = changes.contents | changes.blanked
        for number in {*changes.dead_contents, *put}:
            if found := self._contents.get(number):
                place = ContentPosition.unpack(found[0])
                self.space.uses(place.sequence, -place.size)
        for packed in put.values():
            place = ContentPosition.unpack(packed)
            self.space.uses(place.sequence, place.size)

    def place(self, content: int) -> ContentPosition | None:
        """The place of a content's columns; None where it is gone."""
        found = self._contents.get(content)
        return found and ContentPosition.unpack(found[0])

    def whole(self, content: int) -> bool:
        """Whether no body of the content was blanked."""
        return self._contents[content][1]

    def _live(self, row: EntryRow) -> LiveRow:
        # For each batch of a start: a million is nothing out of the ordinary.
        packed, whole = self._contents[row.content]
        gone = self._dequeues.get(row.id)
        dequeues = b"".join(gone.values()) if gone else b""
        return LiveRow(row.id, row.partition, row.content, row.total, dequeues, size_at(packed), whole)

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        """As Provider says. Lets other tasks run meanwhile."""
        found = {}
        for partition in partitions:
            found[partition] = sorted(self._of.get(partition, ()))
            await asyncio.sleep(0)
        return found

    def batch(self, number: int) -> tuple[EntryRow, list[bytes], int] | None:
        """A batch's row, its dequeues, and up to where it was delivered; None where it is gone."""
        row = self._entries.get(number)
        return row and (row, list(self._dequeues.get(number, {}).values()), self._delivered.get(number, 0))

    async def on(self, content: int) -> list[tuple[bytes, list[bytes]]]:
        """Entries and dequeues of the batches on a content. Lets other tasks run meanwhile."""
        rows, found = list(self._entries.values()), []
        for start in range(0, len(rows), _AT_ONCE):
            found += [row for row in rows[start : start + _AT_ONCE] if row.content == content]
            await asyncio.sleep(0)
        return [(row.entries, list(self._dequeues.get(row.id, {}).values())) for row in found]

    async def between(self, first: int, until: int) -> list[int]:
        """Contents whose place has a sequence from `first` to before `until`. Lets other tasks run meanwhile."""
        all_of_them, found = list(self._contents.items()), []
        for start in range(0, len(all_of_them), _AT_ONCE):
            part = all_of_them[start : start + _AT_ONCE]
            found += [
                number for number, (packed, _) in part if first <= ContentPosition.unpack(packed).sequence < until
            ]
            await asyncio.sleep(0)
        return found

    # ------------------------------------------------------------------ snapshots

    def counters(self) -> tuple[int, int, int]:
        """The running time, the last origin, and the number of starts of the store."""
        return self._running, self._origin, self._incarnation

    def everything(self) -> list[Table]:
        """All tables as they are now, in an order that a start does not change; outcomes oldest first."""
        aged: dict[str, list[Row]] = {name: [] for name in _AGED}
        for name, row, at in self._aged():
            aged[name].append((at, row) if name == "outcomes" else (0, row))
        in_order = {name: [row for _, row in sorted(rows)] for name, rows in aged.items()}
        return [(name, in_order.get(name, rows)) for name, rows in self._tables()]

    def tables(self) -> list[Table]:
        """All tables as they are now, except those in `aged`."""
        return [table for table in self._tables() if table[0] not in _AGED]

    def aged(self) -> list[tuple[str, Row, int]]:
        """Name of the table, row, and its stamp, as they are now, oldest first."""
        return sorted(self._aged(), key=lambda each: each[2])

    def _aged(self) -> Iterator[tuple[str, Row, int]]:
        yield from (("floors", (*key, uid), self._touched[key]) for key, uid in self._floors.items())
        yield from (("writers", row, self._touched[row[0]]) for row in self._writers.items())
        yield from (("outcomes", (row.transaction, row.committed), row.at) for row in self._outcomes.values())
