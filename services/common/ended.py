"""How programs ended that a supervisor starts again: in files of its run folder, for whoever tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ENDED: Final = ".ended"
"""One line in <program>.ended, as long as the program does not serve again."""
FORMER: Final = ".former"
"""The same line from then on: how the process before this one ended."""


def ended(folder: Path, kind: str = ENDED) -> dict[str, str]:
    """What the files of a kind say, by program."""
    found: dict[str, str] = {}
    for path in folder.glob(f"*{kind}"):
        try:
            found[path.stem] = path.read_text().strip()
        except (OSError, ValueError):
            continue  # it serves again by now
    return found
