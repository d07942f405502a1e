"""A file that the first process to need it makes, readable by its owner only."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def make_once(path: Path, line: str) -> None:
    """Makes the file with all of `line`, or not at all: of several processes that start at once, one makes it.

    Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-") as file:  # of mode 0600
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, path)
        except FileExistsError:
            return
