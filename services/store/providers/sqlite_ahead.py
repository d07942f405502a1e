"""Room in the log that is there before it is needed: a commit into it is synced in half the time, or less.

Where a commit makes the log longer, the file system has to write down the new length as well, in a journal of its own
that everybody's writes share. A log that was checkpointed is written again from its start; until then it grows.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_AHEAD = 1 << 20
# By which commits make the log longer for which it pays: those of streams write what they need, and at once.
_SMALL = 128 << 10


class LogAhead:
    """Of SQLite's write-ahead log, which ends before zeros, by its rules; used by its writer, in its thread."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._path = str(log)
        self._size = 0

    def keep(self) -> None:
        """After a commit: appends zeros when a small one has come to the end of the file. Without room it does not."""
        with suppress(OSError):
            size = os.stat(self._path).st_size  # noqa: PTH116 - a commit is answered behind it, so it is as quick as can be
            grown, self._size = size - self._size, size
            if 0 < grown <= _SMALL:
                with self._log.open("ab") as log:
                    self._size += log.write(bytes(_AHEAD))
