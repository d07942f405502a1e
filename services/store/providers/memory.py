"""The store in memory: for tests, and for brokers that may lose all messages with the process."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

from services.common.clock import epoch_ms
from services.common.disk import Room
from services.store.origins import LAST_ORIGIN
from services.store.provider import (
    Changes,
    EntryRow,
    LeaseRow,
    LiveRow,
    OutcomeRow,
    RecordRow,
    RefusalRow,
    Sharing,
    StoredBatch,
    TakenRow,
)
from services.store.snapshot import Table, counted, pieces


class MemoryProvider:
    """Holds everything in dictionaries; what is committed lives as long as the object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # not used
        # Peers outlive the process, and it does not know the numbers that its predecessor gave them: others are chosen.
        self._origin = secrets.randbelow(LAST_ORIGIN // 2)
        self._incarnation = epoch_ms() // 1000
        self._running = 0
        self._contents: dict[int, tuple[bytes, bool]] = {}
        self._entries: dict[int, EntryRow] = {}
        self._dequeues: dict[int, dict[int, bytes]] = {}  # batch -> left -> indexes
        self._delivered: dict[int, int] = {}
        self._floors: dict[tuple[int, int], int] = {}  # partition, origin -> uid
        self._taken: dict[int, TakenRow] = {}
        self._taken_of: dict[tuple[int, int], set[int]] = {}  # partition, origin -> ids, where there are any
        self._writers: dict[int, int] = {}
        self._refusals: dict[tuple[int, int], RefusalRow] = {}
        self._outcomes: dict[int, OutcomeRow] = {}
        self._leases: dict[str, LeaseRow] = {}
        self._records: dict[tuple[str, str], RecordRow] = {}
        self._touched: dict[object, int] = {}  # writers, floors -> when

    async def open(self, *, patient: bool = True) -> None: ...

    async def close(self) -> None: ...

    def room(self) -> Room | None:
        return None

    async def make_room(self) -> None: ...

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
        self._running = changes.running or self._running
        self._incarnation = changes.incarnation or self._incarnation

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
        self._commit_taken(changes)
        for writer, sequence in changes.writers.items():
            self._writers[writer] = sequence
            self._touched[writer] = changes.at
        self._refusals.update(((row.writer, row.sequence), row) for row in changes.refusals)
        for transaction, committed in changes.outcomes.items():
            self._outcomes[transaction] = OutcomeRow(transaction, committed, changes.at)

    def _commit_taken(self, changes: Changes) -> None:
        for key in changes.replaced:
            self._forget_taken(key, self._taken_of.get(key, set()).copy())
        for row in changes.taken:
            self._taken[row.id] = row
            self._taken_of.setdefault((row.partition, row.origin), set()).add(row.id)
        # A floor that is written again unchanged keeps its age.
        self._touched.update((key, changes.at) for key, uid in changes.floors.items() if self._floors.get(key) != uid)
        self._floors.update(changes.floors)
        for key, uid in changes.floors.items():
            self._forget_taken(
                key, {number for number in self._taken_of.get(key, ()) if self._taken[number].upto < uid}
            )

    def _forget_taken(self, key: tuple[int, int], numbers: set[int]) -> None:
        for number in numbers:
            del self._taken[number]
        if left := self._taken_of.pop(key, set()) - numbers:
            self._taken_of[key] = left

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        self._outcomes = {number: row for number, row in self._outcomes.items() if row.at >= outcomes_before}
        old = {mark for mark, at in self._touched.items() if at < marks_before}
        self._floors = {key: uid for key, uid in self._floors.items() if key not in old}
        for key in self._taken_of.keys() - self._floors.keys():
            self._forget_taken(key, self._taken_of[key])
        self._writers = {writer: sequence for writer, sequence in self._writers.items() if writer not in old}
        self._refusals = {key: row for key, row in self._refusals.items() if row.writer in self._writers}
        self._touched = {mark: at for mark, at in self._touched.items() if mark not in old}

    async def live(self) -> list[LiveRow]:
        return [self._live(row) for row in self._entries.values()]

    def _live(self, row: EntryRow) -> LiveRow:
        columns, whole = self._contents[row.content]
        dequeues = b"".join(self._dequeues.get(row.id, {}).values())
        return LiveRow(row.id, row.partition, row.content, row.total, dequeues, len(columns), whole)

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        keys = sorted((key for key in self._floors if key[0] == partition), key=lambda key: (self._touched[key], key))
        return [(origin, self._floors[partition, origin]) for _, origin in keys]

    async def taken(self, partition: int) -> list[TakenRow]:
        return [row for row in self._taken.values() if row.partition == partition]

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {partition: [] for partition in partitions}
        for row in self._entries.values():
            if row.partition in found:
                found[row.partition].append(row.id)
        return {partition: sorted(numbers) for partition, numbers in found.items()}

    async def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        for number in numbers:
            row = self._entries.get(number)
            if row and (content := self._contents.get(row.content)):
                columns, _ = content
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

    async def refusals(self) -> list[RefusalRow]:
        return list(self._refusals.values())

    async def leases(self) -> list[LeaseRow]:
        return list(self._leases.values())

    async def last_origin(self) -> int:
        return self._origin

    async def running(self) -> int:
        return self._running

    async def begin_incarnation(self) -> int:
        self._incarnation += 1
        return self._incarnation

    async def records(self) -> list[RecordRow]:
        return list(self._records.values())

    async def snapshot(self) -> AsyncGenerator[Changes, None]:
        tables, counters = self._tables(), (self._running, self._origin, self._incarnation)
        yield Changes()
        for changes in pieces(counters[0], tables):
            yield changes
        yield counted(*counters)

    def _tables(self) -> list[Table]:
        """Copies of all tables: rows never change, but the dictionaries that hold them do."""
        return [
            ("contents", [(number, *content) for number, content in self._contents.items()]),
            ("entries", list(self._entries.values())),
            ("dequeues", [(batch, *row) for batch, rows in self._dequeues.items() for row in rows.items()]),
            ("delivered", list(self._delivered.items())),
            ("taken", list(self._taken.values())),
            ("floors", [(*key, uid) for key, uid in self._floors.items()]),
            ("writers", list(self._writers.items())),
            ("refusals", list(self._refusals.values())),
            ("outcomes", [(row.transaction, row.committed) for row in self._outcomes.values()]),
            ("leases", list(self._leases.values())),
            ("records", list(self._records.values())),
        ]

    async def given(self) -> Changes:
        return Changes()

    def files(self) -> tuple[str, ...]:
        return ()
