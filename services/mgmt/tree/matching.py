"""Names that match a caller's regular expression, which may take for ever, at each name or at the first.

It is looked for beside the event loop, for one after the other. How large it is when it is made is asked before,
and whether a clock can stop it: what calls itself, and what is nearly there, take a gigabyte before their time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import regex

from services.common.clock import monotonic
from services.common.expression_size import check_kind, check_size
from services.mgmt.model.faults import IllegalConfiguration

PATIENCE: Final = 1.0
"""Seconds for all names together."""
_LONGEST: Final = 1000  # characters
_MOST: Final = 100_000  # characters, if what repeats were written as often
_BESIDE: Final = ThreadPoolExecutor(1, "expressions")  # of its own: no sign-in waits for it


async def fitting(pattern: str, names: Sequence[str], what: str, *, anywhere: bool = False) -> list[str]:
    """Those that it fits as a whole, or `anywhere` in them, in letters of any case.

    Raises IllegalConfiguration: no expression, or one that takes too long.
    """
    _check(pattern, what)
    try:
        return await asyncio.get_running_loop().run_in_executor(_BESIDE, _fitting, pattern, names, anywhere)
    except (regex.error, RecursionError, TimeoutError) as error:
        raise IllegalConfiguration(f"{what}: {error}") from None
    except MemoryError:
        raise IllegalConfiguration(f"{what}: it takes too much memory") from None


def _check(pattern: str, what: str) -> None:
    """Raises IllegalConfiguration where it would take too long to make it, or too much to look for it."""
    try:
        check_size(pattern, _LONGEST, _MOST)
        check_kind(pattern)
    except ValueError as error:
        raise IllegalConfiguration(f"{what}: {error}") from None


def _fitting(pattern: str, names: Sequence[str], anywhere: bool) -> list[str]:
    until = monotonic() + PATIENCE
    expression = regex.compile(pattern, regex.IGNORECASE if anywhere else 0, cache_pattern=False)
    fits = expression.search if anywhere else expression.fullmatch
    return [name for name in names if fits(name, timeout=_left(until), concurrent=True)]


def _left(until: float) -> float:
    if (left := until - monotonic()) > 0:
        return left
    raise TimeoutError("it takes too long")
