"""Rows of a provider as pieces of a snapshot: changes that make the same of an empty provider, a little at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from services.store.provider import Changes, DequeueRow, EntryRow, LeaseRow, RecordRow, RefusalRow, TakenRow

# Small enough that making one, and sending it, holds up other work for a few milliseconds at most.
_PIECE_BYTES = 1 << 20
_ROW_BYTES = 128  # of a row besides its bytes and texts

Row = tuple[Any, ...]
Table = tuple[str, Iterable[Row]]  # a key of `_PUTS`, and rows as it takes them


def _put_content(changes: Changes, row: Row) -> None:
    number, columns, whole = row
    (changes.contents if whole else changes.blanked)[number] = columns


_PUTS: dict[str, Callable[[Changes, Row], None]] = {
    "contents": _put_content,
    "entries": lambda changes, row: changes.entries.update({row[0]: EntryRow(*row)}),
    "dequeues": lambda changes, row: changes.dequeues.append(DequeueRow(*row)),
    "delivered": lambda changes, row: changes.delivered.update({row[0]: row[1]}),
    "taken": lambda changes, row: changes.taken.append(TakenRow(*row)),
    "floors": lambda changes, row: changes.floors.update({row[:2]: row[2]}),
    "writers": lambda changes, row: changes.writers.update({row[0]: row[1]}),
    "refusals": lambda changes, row: changes.refusals.append(RefusalRow(*row)),
    "outcomes": lambda changes, row: changes.outcomes.update({row[0]: bool(row[1])}),
    "leases": lambda changes, row: changes.leases.update({row[0]: LeaseRow(*row)}),
    "records": lambda changes, row: changes.records.update({row[:2]: RecordRow(*row)}),
}


class Pieces:
    """Makes pieces of rows as they come; `running` is the age of all marks (the store's running time, ms)."""

    def __init__(self, running: int) -> None:
        self._running = running
        self._begin()

    def _begin(self) -> None:
        self._changes, self._room = Changes(at=self._running), _PIECE_BYTES

    def put(self, name: str, row: Row) -> Changes | None:
        """Takes a row of the table `name`, a key of `_PUTS`; gives the piece if it is full with it."""
        _PUTS[name](self._changes, row)
        self._room -= _ROW_BYTES + sum(len(value) for value in row if isinstance(value, bytes | str))
        return self.rest() if self._room <= 0 else None

    def rest(self) -> Changes | None:
        """The last piece, which is not full; None when it is empty."""
        changes = self._changes
        self._begin()
        return changes or None


def pieces(running: int, tables: Iterable[Table]) -> Iterator[Changes]:
    """All rows, in the order given; `running` as for Pieces."""
    found = Pieces(running)
    for name, rows in tables:
        for row in rows:
            if full := found.put(name, row):
                yield full
    if rest := found.rest():
        yield rest


def counted(running: int, origin: int, incarnation: int) -> Changes:
    """The last piece: the store's counters."""
    return Changes(at=running, origin=origin, running=running, incarnation=incarnation)
