"""Lines in files under `<folder>/date=YYYY-MM-DD/`: new files by size and day, old ones deleted.

A file keeps its name from its first line on; a reader that follows it only ever sees lines added.
"""

from __future__ import annotations

import errno
import io
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from services.common.clock import epoch_ms

_DAY = "date="


class RotatingFiles:
    """One writer's files; others may write to the same folder."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        largest: int,
        keep_bytes: int,
        keep_days: int,
        now: Callable[[], datetime] = lambda: datetime.fromtimestamp(epoch_ms() / 1000, UTC),
    ) -> None:
        """`name` is this writer's own; of all writers together, `keep_bytes` are kept, for `keep_days`."""
        self._folder = folder
        self._name = name
        self._largest = largest
        self._keep_bytes = keep_bytes
        self._keep_days = keep_days
        self._now = now
        self._numbers = count(1)
        self._file: io.FileIO | None = None
        self._day = ""
        self._size = 0

    def append(self, written: bytes) -> None:
        """Writes whole lines; raises OSError."""
        day = f"{self._now():%Y-%m-%d}"
        if self._file is None or day != self._day or self._size + len(written) > self._largest:
            self._open(day)
        self._append(written)

    def close(self) -> None:
        """Ends the file."""
        if self._file:
            self._file.close()
            self._file = None

    def _append(self, written: bytes) -> None:
        """Writes all of it or nothing: the part that fitted must not begin the next line."""
        assert self._file
        try:
            if self._file.write(written) < len(written):
                raise self._no_room("the disk is full")
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(written)

    def _no_room(self, why: str) -> OSError:
        return OSError(errno.ENOSPC, f"{why}: make room for {self._folder}, it goes on by itself")

    def _open(self, day: str) -> None:
        self.close()
        folder = self._folder / f"{_DAY}{day}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = (folder / f"{self._name}-{next(self._numbers):04}.jsonl").open("ab", buffering=0)
        self._day, self._size = day, self._file.tell()
        self._tidy()

    def _tidy(self) -> None:
        """Deletes days that are too old, then the oldest files until the others fit. Other writers tidy up too."""
        oldest = f"{_DAY}{self._now() - timedelta(days=self._keep_days):%Y-%m-%d}"
        for folder in self._folder.glob(f"{_DAY}*"):
            if folder.name < oldest:
                shutil.rmtree(folder, ignore_errors=True)
        files = [(path.stat().st_mtime, path.stat().st_size, path) for path in self._written()]
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._keep_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _written(self) -> list[Path]:
        assert self._file
        own = Path(self._file.name)
        return [path for path in self._folder.glob(f"{_DAY}*/*.jsonl") if path != own and path.is_file()]
