"""Asks servers that may not answer, such as a directory: in a few threads of its own, with a time limit.

So a wait holds up neither the event loop nor the questions of other providers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from services.common.errors import Unavailable

_T = TypeVar("_T")

SILENT = "see that it answers, and that the provider's options fit: hopline providers list"
"""What an operator does about a server that does not answer as it should."""


class Asking:
    """The threads of one provider."""

    def __init__(self, provider: str, threads: int, seconds: float) -> None:
        self._provider = provider
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"ask {provider}")

    async def ask(self, question: Callable[[], _T]) -> _T:
        """The answer. Raises Unavailable when that takes too long, also because all threads are busy."""
        asked = asyncio.get_running_loop().run_in_executor(self._pool, question)
        try:
            async with asyncio.timeout(self._seconds):
                return await asked
        except TimeoutError:
            text = f"authentication provider '{self._provider}' does not answer within {self._seconds:g} seconds"
            raise Unavailable(text) from None

    def close(self) -> None:
        """Threads end as soon as they have an answer, or cannot get one."""
        self._pool.shutdown(wait=False, cancel_futures=True)
