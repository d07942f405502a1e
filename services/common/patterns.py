"""Patterns for names: `*` is any text, `?` any character, and nothing else is special.

Brackets are not: they are common in names of queues, and in IPv6 addresses.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache


def fits(value: str, pattern: str) -> bool:
    """Whether the whole value matches; case matters."""
    return fnmatchcase(value, _in_the_librarys_words(pattern))


@lru_cache(maxsize=1024)
def _in_the_librarys_words(pattern: str) -> str:
    return pattern.replace("[", "[[]")
