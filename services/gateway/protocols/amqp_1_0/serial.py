"""Numbers of 32 bits that go round (part 2, section 2.8.10; RFC 1982)."""

from __future__ import annotations

from typing import Final

_ROUND: Final = 1 << 32
_HALF: Final = 1 << 31


def after(number: int, count: int) -> int:
    """The number that comes so many behind."""
    return (number + count) % _ROUND


def distance(number: int, later: int) -> int:
    """How many `later` comes behind `number`; below zero when it comes before."""
    return (later - number + _HALF) % _ROUND - _HALF
