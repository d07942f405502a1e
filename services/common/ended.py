"""How programs ended that a supervisor starts again, and that do not serve yet: in files, for whoever tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ENDED: Final = ".ended"
"""The supervisor writes one line to <program>.ended in the run folder."""


def ended(folder: Path) -> dict[str, str]:
    """What it says, by program."""
    found: dict[str, str] = {}
    for path in folder.glob(f"*{ENDED}"):
        try:
            found[path.stem] = path.read_text().strip()
        except (OSError, ValueError):
            continue  # it serves again by now
    return found
