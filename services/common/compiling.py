"""Selectors that a process has not at hand, compiled in turns: hundreds that come at once are seconds of everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from services.common.selectors.selector import InvalidSelector, Selector, is_compiled, selector

_AT_ONCE: Final = 1000
"""Characters in one turn of the event loop, some milliseconds, or one selector."""


class Compiling:
    """Of one process: all that compile selectors of others share it."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._spent = 0

    async def compiled(self, text: str, compiled: Callable[[str], Selector] = selector) -> Selector:
        """As `compiled` gives it, which raises InvalidSelector; remembered for as long as anybody has it."""
        if is_compiled(text):
            return compiled(text)
        async with self._turn:
            self._spent += len(text)
            if self._spent > _AT_ONCE:
                await asyncio.sleep(0)  # who waited meanwhile is served first
                self._spent = len(text)
            return compiled(text)

    async def kept(self, texts: Iterable[str]) -> list[Selector]:
        """Whoever has these finds them at hand, and shall be asked then: what is none is refused where it is wanted."""
        found = list[Selector]()
        for text in texts:
            with suppress(InvalidSelector):
                found.append(await self.compiled(text))
        return found
