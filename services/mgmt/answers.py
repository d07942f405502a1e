"""Asks many processes at once whether they serve; for one that stands still only the first report waits long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from services.common.runtime import Tasks

_DEADLINE = 0.5  # seconds for one health check
_SOON = 0.05  # seconds to wait for who was silent when it was asked last

HealthCheck = Callable[[str, float, str], Awaitable[bool]]
"""Of an address, within so many seconds, what of it: "" is the whole process."""

Question = tuple[str, str]
"""An address, and what of it."""


class Answers:
    """Who was silent is asked on beside the others."""

    def __init__(self, check: HealthCheck) -> None:
        self._check = check
        self._tasks = Tasks()
        self._asked: dict[Question, asyncio.Task[bool]] = {}
        self._silent: set[Question] = set()

    async def serving(self, questions: Iterable[Question]) -> set[Question]:
        """Those that are answered with yes; what is not answered in time is not."""
        asked = self._asked = {question: self._ask(question) for question in questions}
        await asyncio.wait(asked.values(), timeout=_SOON)
        await asyncio.gather(*(task for question, task in asked.items() if question not in self._silent))
        found = {question for question, task in asked.items() if task.done() and task.result()}
        self._silent = asked.keys() - found
        return found

    def _ask(self, question: Question) -> asyncio.Task[bool]:
        task = self._asked.get(question)
        return task if task and not task.done() else self._tasks.start(self._answer(question), name="ask for health")

    async def _answer(self, question: Question) -> bool:
        address, what = question
        if answer := await self._check(address, _DEADLINE, what):
            self._silent.discard(question)  # one that is slow is waited for again
        return answer
