"""The store in memory: for tests and for brokers whose messages may die with the machine."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path

from services.store.origins import LAST_ORIGIN
from services.store.provider import (
    Changes,
    EntryRow,
    LeaseRow,
    LiveRow,
    OutcomeRow,
    RecordRow,
    Sharing,
    StoredBatch,
)


class MemoryProvider:
    """Holds everything in dictionaries; what is committed lives as long as the object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # of which nothing is used
        # Peers outlive the process, and nothing tells this one what its predecessor gave them: begin elsewhere.
        self._origin = secrets.randbelow(LAST_ORIGIN // 2)
        self._incarnation = int(time.time())
        self._contents: dict[int, tuple[bytes, bool]] = {}
        self._entries: dict[int, EntryRow] = {}
        self._dequeues: dict[int, dict[int, bytes]] = {}  # batch -> left -> indexes
        self._delivered: dict[int, int] = {}
        self._watermarks: dict[tuple[int, int], int] = {}
        self._writers: dict[int, int] = {}
        self._refusals: set[tuple[int, int]] = set()
        self._outcomes: dict[int, OutcomeRow] = {}
        self._leases: dict[str, LeaseRow] = {}
        self._records: dict[tuple[str, str], RecordRow] = {}
        self._touched: dict[object, int] = {}  # writers and watermarks -> when

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def commit(self, changes: Changes) -> None:
        """Cannot fail."""
        self._commit_journal(changes)
        self._commit_marks(changes)
        self._leases.update(changes.leases)
        for key, row in changes.records.items():
            if row is None:
                self._records.pop(key, None)
            else:
                self._records[key] = row
        self._origin = changes.origin or self._origin

    def _commit_journal(self, changes: Changes) -> None:
        for batch in changes.dead_batches:
            self._entries.pop(batch, None)
            self._dequeues.pop(batch, None)
            self._delivered.pop(batch, None)
        for content in changes.dead_contents:
            self._contents.pop(content, None)
        self._contents.update((number, (columns, True)) for number, columns in changes.contents.items())
        self._contents.update((number, (columns, False)) for number, columns in changes.blanked.items())
        self._entries.update(changes.entries)
        for row in changes.dequeues:
            self._dequeues.setdefault(row.batch, {})[row.left] = row.indexes
        for batch, upto in changes.delivered.items():
            self._delivered[batch] = max(self._delivered.get(batch, 0), upto)

    def _commit_marks(self, changes: Changes) -> None:
        for mark, uid in changes.watermarks.items():
            self._watermarks[mark] = max(self._watermarks.get(mark, 0), uid)
            self._touched[mark] = changes.at
        for writer, sequence in changes.writers.items():
            self._writers[writer] = sequence
            self._touched[writer] = changes.at
        self._refusals.update(changes.refusals)
        for transaction, committed in changes.outcomes.items():
            self._outcomes[transaction] = OutcomeRow(transaction, committed, changes.at)

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        self._outcomes = {number: row for number, row in self._outcomes.items() if row.at >= outcomes_before}
        old = {mark for mark, at in self._touched.items() if at < marks_before}
        self._watermarks = {mark: uid for mark, uid in self._watermarks.items() if mark not in old}
        self._writers = {writer: sequence for writer, sequence in self._writers.items() if writer not in old}
        self._refusals = {refusal for refusal in self._refusals if refusal[0] in self._writers}
        self._touched = {mark: at for mark, at in self._touched.items() if mark not in old}

    async def live(self) -> list[LiveRow]:
        return [self._live(row) for row in self._entries.values()]

    def _live(self, row: EntryRow) -> LiveRow:
        columns, whole = self._contents[row.content]
        left = min(self._dequeues.get(row.id, {}), default=row.total)
        return LiveRow(row.id, row.content, row.total, left, len(columns), whole)

    async def watermarks(self, partition: int) -> list[tuple[int, int]]:
        return [(origin, uid) for (where, origin), uid in self._watermarks.items() if where == partition]

    async def batches(self, partition: int) -> AsyncIterator[StoredBatch]:
        for number in sorted(row.id for row in self._entries.values() if row.partition == partition):
            if row := self._entries.get(number):
                columns, _ = self._contents[row.content]
                dequeues = list(self._dequeues.get(number, {}).values())
                yield StoredBatch(row, columns, dequeues, self._delivered.get(number, 0))

    async def sharing(self, content: int) -> Sharing | None:
        found = self._contents.get(content)
        if found is None:
            return None
        on_it = [row for row in self._entries.values() if row.content == content]
        return Sharing(found[0], [(row.entries, list(self._dequeues.get(row.id, {}).values())) for row in on_it])

    async def outcomes(self) -> list[OutcomeRow]:
        return list(self._outcomes.values())

    async def writers(self) -> dict[int, int]:
        return dict(self._writers)

    async def refusals(self) -> set[tuple[int, int]]:
        return set(self._refusals)

    async def leases(self) -> list[LeaseRow]:
        return list(self._leases.values())

    async def last_origin(self) -> int:
        return self._origin

    async def begin_incarnation(self) -> int:
        self._incarnation += 1
        return self._incarnation

    async def records(self) -> list[RecordRow]:
        return list(self._records.values())
