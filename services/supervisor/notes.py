"""Small files that tell other programs of a running stack: process ids, the bus's address. A full disk is no error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

_AGAIN_SECONDS = 1.0

log = structlog.get_logger()


class Notes:
    """What finds no room on the disk is written as soon as there is room: others would look in vain for ever."""

    def __init__(self) -> None:
        self._unwritten: dict[Path, str] = {}

    def write(self, path: Path, text: str) -> None:
        """Writes a line; logs a warning where it cannot be written, and keeps it."""
        try:
            path.write_text(f"{text}\n")
        except OSError as failure:
            if path not in self._unwritten:
                log.warning(
                    "a file about the stack for other programs cannot be written, will try until it can",
                    path=str(path),
                    reason=str(failure),
                    do="see that its disk has room, and that its folder can be written to",
                )
            self._unwritten[path] = text
        else:
            self._unwritten.pop(path, None)

    def move(self, path: Path, to: Path) -> None:
        """What it tells, if anything, is told by another file from now on."""
        self._unwritten.pop(path, None)
        try:
            path.replace(to)
        except FileNotFoundError:
            return  # it told nothing
        except OSError as failure:
            what = "a file about the stack for other programs stays"
            log.warning(what, path=str(path), reason=str(failure), do="delete it: it tells what is over")

    async def keep_trying(self) -> None:
        """Writes what is left, again and again; runs for ever."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            for path, text in list(self._unwritten.items()):
                self.write(path, text)
