"""What repeats, remembered: a dictionary that begins again when it is full, by number or by size."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """Looked up as any dictionary; `put` is the only way in, `clear` the only way out."""

    __slots__ = ("_bytes", "_entries", "size")

    def __init__(self, entries: int, size: int) -> None:
        """At most so many entries, and so many bytes."""
        super().__init__()
        self._entries = entries
        self._bytes = size
        self.size = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Remembers a value that was not there, unless it is too large; `size` in bytes as the limit counts them."""
        if size > self._bytes:
            return
        if len(self) >= self._entries or self.size + size > self._bytes:
            self.clear()
        self[key] = value
        self.size += size

    def clear(self) -> None:
        """Begins again."""
        super().clear()
        self.size = 0
