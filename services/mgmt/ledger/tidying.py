"""What happens to files later: those of an hour that is over become one, and the oldest go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, groupby
from pathlib import Path
from typing import NamedTuple

import structlog

from services.mgmt.ledger.cabinet import HOUR, Cabinet, Change, hour_of
from services.mgmt.ledger.pace import Rest, no_rest
from services.mgmt.ledger.tables import DAMAGED, MERGED, NAMES, PAYLOADS

log = structlog.get_logger()

# ruff: noqa: PLC0415 - Arrow takes memory and time: what needs it is imported where there is something to merge

_MOST_ROWS = 1_000_000  # in a merged file
_LATE = 120.0  # seconds after an hour's end in which most of its rows come


class Limits(NamedTuple):
    """What is kept."""

    days: float
    bytes: int
    payload_days: float = 1.0
    payload_bytes: int = 1 << 30


class Tidying:
    """Each step stands for itself: `prepare` gives None when there is nothing more to do now."""

    def __init__(self, cabinet: Cabinet, limits: Limits, rest: Rest = no_rest) -> None:
        """`rest` is called between pieces of what takes long: reading."""
        self._cabinet = cabinet
        self._limits = limits
        self._rest = rest
        self._damaged: set[Path] = set()

    def prepare(self, time: float) -> Change | None:
        """One thing that is to be carried out; `time` is Unix."""
        return self._drop(time) or next(filter(None, (self._merge(table, time) for table in MERGED)), None)

    def give_way(self) -> Change | None:
        """The oldest hour, to be removed whatever the limits say; the newest stays. What was captured goes before."""
        if payloads := list(self._cabinet.files(PAYLOADS)):
            return Change(remove=self._cabinet.relative(payloads))
        files = [path for table in NAMES for path in self._cabinet.files(table)]
        old = _oldest(files, max(map(hour_of, files), default=0))
        return Change(remove=self._cabinet.relative(old)) if old else None

    def carry_out(self, change: Change) -> None:
        """Does what was prepared."""
        self._cabinet.commit(change)
        self._cabinet.remove_empty(change)

    def _merge(self, table: str, time: float) -> Change | None:
        for _, hour in groupby(self._cabinet.files(table), hour_of):
            files = [path for path in hour if path not in self._damaged]
            if len(files) < 2 or time < (hour_of(files[0]) + 1) * 3600 + _LATE:
                continue
            try:
                if change := self._merge_some(table, files):
                    return change
            except (OSError, ValueError):
                if not self._set_aside(table, files):
                    raise
        return None

    def _merge_some(self, table: str, files: list[Path]) -> Change | None:
        several = (group for group in _groups(files) if len(group) > 1)
        return next((self._merged(table, group) for group in several), None)

    def _set_aside(self, table: str, files: list[Path]) -> bool:
        """Whether some are damaged: they stay as they are, and from now on hold up no other."""
        from services.mgmt.ledger.parquet import read

        found = False
        for path in files:
            try:
                read(path, table, self._rest)
            except (OSError, ValueError) as failure:
                found = True
                self._damaged.add(path)
                log.warning(
                    "a file of the ledger is damaged and not merged",
                    file=str(path),
                    reason=str(failure).splitlines()[0],
                    do=DAMAGED,
                )
        return found

    def _merged(self, table: str, files: list[Path]) -> Change:
        from services.mgmt.heap import give_back
        from services.mgmt.ledger.merging import merge

        folder = str(Path(*files[0].parts[-3:-1]))
        added = self._cabinet.create(table, folder, HOUR, lambda path: merge(files, table, path, self._rest))
        give_back()
        return Change([added], self._cabinet.relative(files))

    def _drop(self, time: float) -> Change | None:
        files = [path for table in NAMES for path in self._cabinet.files(table)]
        # Old is what newer rows have come after: a clock that is wrong alone makes nothing old.
        now = min(int(time // 3600), max(map(hour_of, files), default=0) + 1)
        oldest = now - int(self._limits.days * 24)
        old = [path for path in files if hour_of(path) < oldest] or self._too_much(files, now)
        old = old or self._old_payloads(now)
        return Change(remove=self._cabinet.relative(old)) if old else None

    def _old_payloads(self, now: int) -> list[Path]:
        """Also of the hour that runs: bodies add up fast."""
        files = list(self._cabinet.files(PAYLOADS))
        sizes = [path.stat().st_size for path in files]
        over = list(accumulate(sizes, initial=self._limits.payload_bytes - sum(sizes)))
        oldest = now - self._limits.payload_days * 24
        return [path for path, room in zip(files, over, strict=False) if room < 0 or hour_of(path) < oldest]

    def _too_much(self, files: list[Path], now: int) -> list[Path]:
        """Those of the oldest hour, when there is more than may be; the hour that runs stays."""
        if sum(path.stat().st_size for path in files) <= self._limits.bytes:
            return []
        return _oldest(files, now)


def _oldest(files: list[Path], stays: int) -> list[Path]:
    """Those of the oldest hour, unless that is the one that stays."""
    oldest = min({hour_of(path) for path in files} - {stays}, default=None)
    return [path for path in files if hour_of(path) == oldest]


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Files that together have not too many rows."""
    from services.mgmt.ledger.parquet import number_of_rows

    group: list[Path] = []
    rows = 0
    for path in files:
        count = number_of_rows(path)
        if group and rows + count > _MOST_ROWS:
            yield group
            group, rows = [], 0
        group.append(path)
        rows += count
    yield group
