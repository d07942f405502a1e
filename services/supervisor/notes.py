"""Small files that tell others of a running stack: process ids, where the bus is. A full disk does not end it."""

from __future__ import annotations

from pathlib import Path

import structlog

log = structlog.get_logger()


def note(path: Path, text: str) -> None:
    """Writes a line, as far as there is room for it."""
    try:
        path.write_text(f"{text}\n")
    except OSError as failure:
        log.warning("a file that tells of the stack cannot be written", path=str(path), reason=str(failure))
