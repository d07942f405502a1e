"""Small files that tell other programs of a running stack: process ids, the bus's address. A full disk is no error."""

from __future__ import annotations

from pathlib import Path

import structlog

log = structlog.get_logger()


def note(path: Path, text: str) -> None:
    """Writes a line; logs a warning where it cannot be written."""
    try:
        path.write_text(f"{text}\n")
    except OSError as failure:
        log.warning("a file about the stack for other programs cannot be written", path=str(path), reason=str(failure))
