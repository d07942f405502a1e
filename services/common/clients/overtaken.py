"""Changes that rest on what was read of the store's records: done again where another process was faster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from services.common.errors import Overtaken, Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")

_TRIES: Final = 30  # of two that change the same all the time, each is the first in half of them
_PAUSE: Final = 0.005  # seconds, and more with each try


def decided_again(change: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Of a change that reads, decides, and puts, where what it has read is unchanged. Raises Unavailable if never."""

    @wraps(change)
    async def changed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        for tries in range(_TRIES):
            try:
                return await change(*args, **kwargs)
            except Overtaken:
                await asyncio.sleep(random.uniform(0, _PAUSE * tries))  # noqa: S311 - so that two do not go in step
        raise Unavailable("others change the same all the time; try again")

    return changed
