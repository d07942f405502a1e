"""Work at the end of a turn of the loop: once, for all that asked for it until then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Soon:
    """Calling it asks for the work."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._asked = self._scheduled = False

    def __call__(self) -> None:
        self._asked = True
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._at_the_end)

    def now(self) -> None:
        """Does the work at once; at the end only if it is asked for again."""
        self._asked = False
        self._work()

    def _at_the_end(self) -> None:
        self._scheduled = False
        if self._asked:
            self.now()
