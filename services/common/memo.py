"""A dictionary of bounded size for values that repeat, in which new ones do not push out those that come back.

Each is bounded, and all those of a process together: a gateway has some for each connection, and thousands of these.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ENTRY: Final = 300  # bytes of an entry, about, besides those that its memo counts
_UNTOLD: Final = 8192  # bytes by which a memo may have grown before its room hears of it
_MOST: Final = 64 << 20  # bytes of all in a process


class Room:
    """What some memos may hold together, about; beyond it those that have most begin again."""

    def __init__(self, most: int) -> None:
        """`most` in bytes."""
        self.used = 0
        self._most = most
        self._sizes: dict[int, int] = {}  # by identity, as are …
        self._memos: dict[int, weakref.ref[Memo[Any, Any]]] = {}  # … those that have told of anything

    def tell(self, memo: Memo[Any, Any], size: int) -> None:
        """So much is in one of them now; it may be empty after this."""
        identity = id(memo)
        if identity not in self._memos:
            self._memos[identity] = weakref.ref(memo, partial(self._forget, identity))
        self.used += size - self._sizes.get(identity, 0)
        self._sizes[identity] = size
        if self.used > self._most:
            self._make_room()

    def _make_room(self) -> None:
        """By more than is wanted now: this looks at all of them."""
        for identity in sorted(self._sizes, key=self._size, reverse=True):
            if (its := self._memos.get(identity)) and (memo := its()) is not None:
                memo.clear()
            if self.used <= self._most // 8 * 7:
                return

    def _size(self, identity: int) -> int:
        return self._sizes.get(identity, 0)

    def _forget(self, identity: int, _: object) -> None:
        self._memos.pop(identity, None)
        self.used -= self._sizes.pop(identity, 0)


_OF_PROCESS: Final = Room(_MOST)


class Memo(dict[K, V]):
    """Looked up as a dictionary, and on a miss by `recall`. Only `put` adds, and only `clear` empties it.

    When it is full, all of it is laid aside, and what was laid aside before is dropped. An entry that is recalled from
    there moves back to the others. When its room is full, it may find itself empty.
    """

    __slots__ = ("__weakref__", "_aside", "_aside_size", "_bytes", "_each", "_entries", "_room", "_untold", "size")

    def __init__(self, entries: int, size: int, room: Room = _OF_PROCESS) -> None:
        """At most so many entries, and so many bytes, with what is laid aside."""
        super().__init__()
        self._entries = (entries + 1) // 2
        self._bytes = (size + 1) // 2
        self._room = room
        self._aside: dict[K, V] = {}
        self._aside_size = 0
        self._each = 0  # average bytes of an entry laid aside
        self._untold = 0
        self.size = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Adds a value that is not there yet, unless it is too large; `size` in bytes as the limit counts them."""
        if size > self._bytes:
            return
        if len(self) >= self._entries or self.size + size > self._bytes:
            self._lay_aside()
        self[key] = value
        self.size += size
        self._untold += size + _ENTRY
        if self._untold > _UNTOLD:
            self._tell()

    def recall(self, key: K) -> V | None:
        """A value that was laid aside, or None."""
        value = self._aside.pop(key, None) if self._aside else None
        if value is not None:
            self.put(key, value, self._each)
        return value

    def clear(self) -> None:
        """Drops all entries."""
        super().clear()
        self._aside, self._aside_size = {}, 0
        self.size = 0
        self._tell()

    def _lay_aside(self) -> None:
        self._aside, self._each = dict(self), self.size // (len(self) or 1)
        self._aside_size = self.size
        super().clear()
        self.size = 0

    def _tell(self) -> None:
        self._untold = 0
        entries = len(self) + len(self._aside)
        self._room.tell(self, self.size + self._aside_size + entries * _ENTRY)
