"""Runs work at the end of the event loop's turn: once, however often it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Soon:
    """Calling the object asks for the work."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._asked = self._scheduled = False

    def __call__(self) -> None:
        self._asked = True
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._at_the_end)

    def now(self) -> None:
        """Does the work at once; it runs at the turn's end only if it is asked for again."""
        self._asked = False
        self._work()

    def _at_the_end(self) -> None:
        self._scheduled = False
        if self._asked:
            self.now()
