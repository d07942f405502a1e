"""What happens to files later: those of an hour that is over become one, and the oldest go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from services.mgmt.ledger.cabinet import HOUR, Cabinet, Change, hour_of
from services.mgmt.ledger.schema import REPEATED, TABLES

_MOST_ROWS = 1_000_000  # in a merged file: what fits into memory at once
_LATE = 120.0  # seconds after an hour's end in which most of its rows come


class Limits(NamedTuple):
    """What is kept."""

    days: float
    bytes: int


class Tidying:
    """Each step is short and stands for itself: `step` gives False when there is nothing more to do now."""

    def __init__(self, cabinet: Cabinet, limits: Limits) -> None:
        self._cabinet = cabinet
        self._limits = limits

    def step(self, time: float) -> bool:
        """Does one thing; `time` is Unix."""
        return self._drop(time) or any(self._merge(table, time) for table in TABLES)

    def _merge(self, table: str, time: float) -> bool:
        for _, hour in groupby(self._cabinet.files(table), hour_of):
            files = list(hour)
            if time < (hour_of(files[0]) + 1) * 3600 + _LATE or len(files) == 1:
                continue
            for group in _groups(files):
                if len(group) > 1:
                    self._replace(table, group)
                    return True
        return False

    def _replace(self, table: str, files: list[Path]) -> None:
        repeated = [field.name for field in TABLES[table] if field.type == REPEATED]
        tables = [pq.read_table(path, read_dictionary=repeated, partitioning=None) for path in files]
        rows = pa.concat_tables([each.cast(TABLES[table]) for each in tables])
        folder = str(Path(*files[0].parts[-3:-1]))
        added = self._cabinet.write(rows, table, folder, HOUR)
        self._cabinet.commit(Change([added], self._cabinet.relative(files)))
        del tables, rows
        pa.default_memory_pool().release_unused()

    def _drop(self, time: float) -> bool:
        files = [path for table in TABLES for path in self._cabinet.files(table)]
        now = int(time // 3600)
        oldest = now - int(self._limits.days * 24)
        old = [path for path in files if hour_of(path) < oldest] or self._too_much(files, now)
        if old:
            self._cabinet.commit(Change(remove=self._cabinet.relative(old)))
            _remove_empty(old)
        return bool(old)

    def _too_much(self, files: list[Path], now: int) -> list[Path]:
        """Those of the oldest hour, when there is more than may be; the hour that runs stays."""
        hours = {hour_of(path) for path in files} - {now}
        if not hours or sum(path.stat().st_size for path in files) <= self._limits.bytes:
            return []
        oldest = min(hours)
        return [path for path in files if hour_of(path) == oldest]


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Files that together have not too many rows."""
    group: list[Path] = []
    rows = 0
    for path in files:
        count = pq.read_metadata(path).num_rows
        if group and rows + count > _MOST_ROWS:
            yield group
            group, rows = [], 0
        group.append(path)
        rows += count
    yield group


def _remove_empty(files: list[Path]) -> None:
    for folder in {path.parent for path in files}:
        for each in (folder, folder.parent):
            if not any(each.iterdir()):
                each.rmdir()
