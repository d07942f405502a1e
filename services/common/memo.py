"""What repeats, remembered: a dictionary of bounded size in which what comes once does not push out what comes back."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """Looked up as any dictionary, and where that finds nothing by `recall`. `put` is the way in, `clear` the way out.

    When it is full, all of it is laid aside, and what was laid aside before is gone. Whoever asks for something that
    lies there has it back among the rest.
    """

    __slots__ = ("_aside", "_bytes", "_each", "_entries", "size")

    def __init__(self, entries: int, size: int) -> None:
        """At most so many entries, and so many bytes, with what is laid aside."""
        super().__init__()
        self._entries = (entries + 1) // 2
        self._bytes = (size + 1) // 2
        self._aside: dict[K, V] = {}
        self._each = 0  # bytes of what is laid aside, on average
        self.size = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Remembers a value that was not there, unless it is too large; `size` in bytes as the limit counts them."""
        if size > self._bytes:
            return
        if len(self) >= self._entries or self.size + size > self._bytes:
            self._aside, self._each = dict(self), self.size // (len(self) or 1)
            super().clear()
            self.size = 0
        self[key] = value
        self.size += size

    def recall(self, key: K) -> V | None:
        """What was laid aside, or None."""
        value = self._aside.pop(key, None) if self._aside else None
        if value is not None:
            self.put(key, value, self._each)
        return value

    def clear(self) -> None:
        """Begins again."""
        super().clear()
        self._aside = {}
        self.size = 0
