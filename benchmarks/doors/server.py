"""Memory and files of the processes under attack."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Has:
    memory: int  # resident bytes
    files: int

    def __str__(self) -> str:
        return f"{self.memory / (1 << 20):,.0f} MiB, {self.files:,} files"


class Server:
    """A broker's processes, or the one of them that the crowd talks to."""

    def __init__(self, name: str, pids: list[int]) -> None:
        self.name = name
        self._pids = pids

    @classmethod
    def of_stack(cls, data: Path, name: str) -> Self:
        """One of a stack that `hopline up` runs on `data`."""
        return cls(name, [int((data / "run" / f"{name}.pid").read_text())])

    def has(self) -> Has:
        each = [_has(Path(f"/proc/{pid}")) for pid in self._pids]
        return Has(sum(has.memory for has in each), sum(has.files for has in each))


def _has(process: Path) -> Has:
    pages = int((process / "statm").read_text().split()[1])
    return Has(pages * os.sysconf("SC_PAGE_SIZE"), sum(1 for _ in (process / "fd").iterdir()))
