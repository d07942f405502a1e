"""A file that the first process to need it makes, readable by its owner only."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def make_once(path: Path, line: str) -> None:
    """Makes the file with all of `line`, or not at all: of several processes that start at once, one makes it.

    Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # of mode 0600
    try:
        _fill(descriptor, f"{line}\n".encode())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink()  # also where the disk is full: each further start would leave another one


def _fill(descriptor: int, content: bytes) -> None:
    """Unbuffered: a file that still has something to write fails again as it is closed, and is not deleted then."""
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
