"""Messages that went to another process: their room goes back to the system at once, since that process takes as much.

Else all of a backlog that is handed over is on the machine twice, until this process is calm, or for good: what is less
than `common/slack.py` takes for worth a pause would stay. Here nobody is held up by the pause: who has to do with these
messages waits for their new owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from services.common.heap import trim
from services.common.runtime import Tasks

_WORTH: Final = 8 << 20  # bytes
_SOON: Final = 0.5  # seconds, for all that goes together, and for who still looks at it


class Gone:
    """Told of what goes."""

    def __init__(self, tasks: Tasks, give_back: Callable[[], None] = trim) -> None:
        self._tasks = tasks
        self._give_back = give_back
        self._bytes = 0
        self._under_way = False

    def told(self, size: int) -> None:
        """So many bytes of messages have left this process."""
        self._bytes += size
        if self._bytes >= _WORTH and not self._under_way:
            self._under_way = True
            self._tasks.start(self._later(), "give memory back")

    async def _later(self) -> None:
        try:
            while self._bytes >= _WORTH:  # one after the other: each looks at all of the heap
                await asyncio.sleep(_SOON)
                self._bytes = 0
                await asyncio.to_thread(self._give_back)
        finally:
            self._under_way = False
