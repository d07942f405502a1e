"""Things that come again and again, and are not worked out each time."""

from __future__ import annotations

from typing import Final, TypeVar

_MOST: Final = 1000

K = TypeVar("K")
V = TypeVar("V")


def keep(known: dict[K, V], key: K, value: V) -> None:
    """Keeps a value; forgets all of them when there are too many, since those that come again are soon back."""
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
