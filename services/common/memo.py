"""A dictionary of bounded size for values that repeat, in which new ones do not push out those that come back."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """Looked up as a dictionary, and on a miss by `recall`. Only `put` adds, and only `clear` empties it.

    When it is full, all of it is laid aside, and what was laid aside before is dropped. An entry that is recalled from
    there moves back to the others.
    """

    __slots__ = ("_aside", "_bytes", "_each", "_entries", "size")

    def __init__(self, entries: int, size: int) -> None:
        """At most so many entries, and so many bytes, with what is laid aside."""
        super().__init__()
        self._entries = (entries + 1) // 2
        self._bytes = (size + 1) // 2
        self._aside: dict[K, V] = {}
        self._each = 0  # average bytes of an entry laid aside
        self.size = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Adds a value that is not there yet, unless it is too large; `size` in bytes as the limit counts them."""
        if size > self._bytes:
            return
        if len(self) >= self._entries or self.size + size > self._bytes:
            self._aside, self._each = dict(self), self.size // (len(self) or 1)
            super().clear()
            self.size = 0
        self[key] = value
        self.size += size

    def recall(self, key: K) -> V | None:
        """A value that was laid aside, or None."""
        value = self._aside.pop(key, None) if self._aside else None
        if value is not None:
            self.put(key, value, self._each)
        return value

    def clear(self) -> None:
        """Drops all entries."""
        super().clear()
        self._aside = {}
        self.size = 0
