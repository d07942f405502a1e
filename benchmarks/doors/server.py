"""Memory and files of the process under attack."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Has:
    memory: int  # resident bytes
    files: int

    def __str__(self) -> str:
        return f"{self.memory / (1 << 20):,.0f} MiB, {self.files:,} files"


class Server:
    """One of a stack that `hopline up` runs on `data`."""

    def __init__(self, data: Path, name: str) -> None:
        self.name = name
        self._pid = int((data / "run" / f"{name}.pid").read_text())

    def has(self) -> Has:
        folder = Path(f"/proc/{self._pid}")
        pages = int((folder / "statm").read_text().split()[1])
        return Has(pages * os.sysconf("SC_PAGE_SIZE"), sum(1 for _ in (folder / "fd").iterdir()))
