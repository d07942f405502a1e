"""Questions to somebody else who may not answer: in threads of their own, few, and for so long.

Whoever waits holds up neither the event loop nor those who are asked for at other providers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from services.common.errors import Unavailable

_T = TypeVar("_T")


class Asking:
    """Of one provider."""

    def __init__(self, provider: str, threads: int, seconds: float) -> None:
        self._provider = provider
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"ask {provider}")

    async def ask(self, question: Callable[[], _T]) -> _T:
        """What it gives. Raises Unavailable when that takes too long, also since others have all threads."""
        asked = asyncio.get_running_loop().run_in_executor(self._pool, question)
        try:
            return await asyncio.wait_for(asked, self._seconds)
        except TimeoutError:
            text = f"authentication provider '{self._provider}' does not answer within {self._seconds:g} seconds"
            raise Unavailable(text) from None

    def close(self) -> None:
        """Threads end as soon as they have an answer, or no hope of one."""
        self._pool.shutdown(wait=False, cancel_futures=True)
