"""A file that whoever needs it first makes, and that only its owner may read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def make_once(path: Path, line: str) -> None:
    """Whole, or not at all: of several processes that start at once, one makes it, and the others read that one.

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
