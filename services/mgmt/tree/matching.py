"""Names that somebody's regular expression fits: it may be one that takes for ever, of each name or of the first.

It is looked for beside the event loop, for one after the other. An expression is made by copying what it repeats, which
nothing stops once it has begun: how much that can be is asked before.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Final

import regex

from services.common.clock import monotonic
from services.mgmt.model.faults import IllegalConfiguration

PATIENCE: Final = 1.0
"""Seconds for all names together."""
_LONGEST: Final = 1000  # characters
_MOST: Final = 1000  # copies
_TIMES: Final = regex.compile(r"\{(\d*)(?:,(\d*))?\}")


class Matching:
    """Of one virtual host's queues, or more."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def fitting(self, pattern: str, names: Sequence[str], what: str) -> list[str]:
        """Those that it fits as a whole. Raises IllegalConfiguration: no expression, or one that takes too long."""
        check_size(pattern, what)
        async with self._one_at_a_time:
            try:
                return await asyncio.to_thread(_fitting, pattern, names)
            except (regex.error, RecursionError, TimeoutError) as error:
                raise IllegalConfiguration(f"{what}: {error}") from None


def check_size(pattern: str, what: str) -> None:
    """Raises IllegalConfiguration where to make it would take too long; `what` it is."""
    if len(pattern) > _LONGEST:
        raise IllegalConfiguration(f"{what}: longer than {_LONGEST} characters")
    times = [max(_number(least), _number(most), 1) for least, most in _TIMES.findall(pattern)]
    if math.prod(times) > _MOST:
        raise IllegalConfiguration(f"{what}: what repeats {_MOST} times, one repetition in another, is too much")


def _number(digits: str) -> int:
    return int(digits[: len(str(_MOST)) + 1] or 0)  # so many digits are too much, whatever comes behind


def _fitting(pattern: str, names: Sequence[str]) -> list[str]:
    until = monotonic() + PATIENCE
    expression = regex.compile(pattern)
    return [name for name in names if expression.fullmatch(name, timeout=_left(until), concurrent=True)]


def _left(until: float) -> float:
    if (left := until - monotonic()) > 0:
        return left
    raise TimeoutError("it takes too long")
