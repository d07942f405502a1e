"""A question that many have at once, and that costs much: one answer is for all who had it before it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Question:
    """One is under way at a time. Who comes meanwhile shares the next: this one may know nothing of their change."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._asked = 0
        self._answered = 0  # the last of them that has an answer, which is …
        self._answer = False

    async def answer(self, ask: Callable[[], Awaitable[bool]]) -> bool:
        """Of a question that was asked after this call."""
        before = self._asked
        async with self._one:
            if self._answered <= before:
                self._asked += 1
                mine = self._asked
                self._answer = await ask()
                self._answered = mine
            return self._answer
