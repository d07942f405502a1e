"""Answers that are remembered while what they are made of is small: so many large ones would fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar, cast

ENTRIES: Final = 4096
LONGEST: Final = 512
"""Bytes of properties: longer ones are hardly ever the same twice."""

P = ParamSpec("P")
T = TypeVar("T")


def remembered(make: Callable[P, T]) -> Callable[P, T]:
    """Of a function whose last argument is properties."""
    known = cast("Callable[P, T]", lru_cache(ENTRIES)(make))

    @wraps(make)
    def choose(*given: P.args, **named: P.kwargs) -> T:
        small = len(cast("bytes", given[-1])) <= LONGEST
        return known(*given, **named) if small else make(*given, **named)

    return choose
