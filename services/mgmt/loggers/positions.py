"""Up to which line of each process a file has them: kept beside it, for who writes it next. Waits for a disk.

Times do not tell that: machines' clocks differ, and what one process logged first may come last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from services.rpc.logs_pb2 import Line

SUFFIX: Final = ".positions"
_MOST: Final = 256
"""Runs of processes that are remembered, the latest: the others have ended."""


def beside(path: Path) -> Path:
    """Where they are of a file."""
    return Path(f"{path}{SUFFIX}")


class Positions:
    """Of one file, by its writer."""

    def __init__(self, path: Path) -> None:
        self._path = beside(path)
        self._last: dict[str, int] = {}

    def read(self) -> None:
        """As who wrote the file before left them, where that is further; what cannot be read is of nobody."""
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            told = json.loads(self._path.read_bytes())
            for process, number in told["processes"].items():
                self._last[process] = max(int(number), self._last.get(process, 0))

    def new(self, lines: Iterable[Line]) -> list[Line]:
        """Those that are not in the file yet; a line without a number is of none."""
        return [line for line in lines if not line.number or line.number > self._last.get(line.process, 0)]

    def written(self, lines: Sequence[Line]) -> None:
        """They are in it now."""
        numbered = [line for line in lines if line.number]
        for line in numbered:
            self._last.pop(line.process, None)
            self._last[line.process] = line.number
        while len(self._last) > _MOST:
            del self._last[next(iter(self._last))]
        if numbered:
            self._keep()

    def _keep(self) -> None:
        beginning = Path(f"{self._path}.part")
        with suppress(OSError):  # the file's own trouble is told; without this, who writes next may tell some again
            beginning.write_text(json.dumps({"processes": self._last}))
            beginning.replace(self._path)
