"""A dictionary of bounded size for values that repeat, in which new ones do not push out those that come back.

Each is bounded, and all those of a process together: a gateway has some for each connection, and thousands of these.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ENTRY: Final = 300  # bytes of an entry, about, besides those that its memo counts
_UNTOLD: Final = 8192  # bytes by which a memo may have grown before its room hears of it: a word takes a microsecond …
_MOST: Final = 64 << 20  # bytes of all in a process
_NONE: Final[dict[Any, Any]] = {}  # is what is laid aside at first: of each connection's memos most stay small
_LIGHT: Final = 256  # bytes of an entry that is not weighed by itself while it is laid aside
_UNSEEN: Final = 8  # … and all of them together by this part of what they may hold, however many they are


class Room:
    """What some memos may hold together, about; beyond it those that have most begin again."""

    def __init__(self, most: int) -> None:
        """`most` in bytes."""
        self.used = 0
        self.untold = _UNTOLD
        """Bytes by which each may grow before it tells."""
        self._most = most
        self._few = most // _UNSEEN // _UNTOLD  # so many memos may grow by all of that
        self._count = 0  # of memos, also of those that have told of nothing yet
        self._sizes: dict[int, int] = {}  # by identity, as are …
        self._memos: dict[int, weakref.ref[Memo[Any, Any]]] = {}  # … those that have told of anything

    def came(self) -> None:
        """There is one more, which is empty."""
        self._count += 1
        if self._count > self._few:
            self._share_out()

    def went(self, memo: Memo[Any, Any]) -> None:
        """One is there no more."""
        self._count -= 1
        if self._count >= self._few:
            self._share_out()
        if self._memos.pop(id(memo), None) is not None:
            self.used -= self._sizes.pop(id(memo), 0)

    def tell(self, memo: Memo[Any, Any], size: int) -> None:
        """So much is in one of them now; it may be empty after this."""
        identity = id(memo)
        if identity not in self._memos:
            self._memos[identity] = weakref.ref(memo)
        self.used += size - self._sizes.get(identity, 0)
        self._sizes[identity] = size
        if self.used > self._most:
            self._make_room()

    def _share_out(self) -> None:
        self.untold = min(_UNTOLD, self._most // _UNSEEN // (self._count or 1))

    def _make_room(self) -> None:
        """By more than is wanted now: this looks at all of them."""
        for identity in sorted(self._sizes, key=self._size, reverse=True):
            if (its := self._memos.get(identity)) and (memo := its()) is not None:
                memo.clear()
            if self.used <= self._most // 8 * 7:
                return

    def _size(self, identity: int) -> int:
        return self._sizes.get(identity, 0)


_OF_PROCESS: Final = Room(_MOST)


class Memo(dict[K, V]):
    """Looked up as a dictionary, and on a miss by `recall`. Only `put` and `put_all` add, and only `clear` empties it.

    When it is full, all of it is laid aside, and what was laid aside before is dropped. An entry that is recalled from
    there moves back to the others. When its room is full, it may find itself empty.
    """

    __slots__ = (
        "__weakref__", "_aside", "_aside_heavy", "_aside_size", "_bytes", "_each", "_entries", "_heavy", "_room",
        "_untold", "size",
    )  # fmt: skip

    def __init__(self, entries: int, size: int, room: Room = _OF_PROCESS) -> None:
        """At most so many entries, and so many bytes, with what is laid aside."""
        super().__init__()
        self._entries = (entries + 1) // 2
        self._bytes = (size + 1) // 2
        self._room = room
        self._aside: dict[K, V] = _NONE
        self._aside_size = 0
        self._each = 0  # average bytes of a light entry laid aside
        self._heavy: dict[K, int] | None = None  # bytes of those that are not …
        self._aside_heavy: dict[K, int] | None = None  # … and of those laid aside: else many would come back as light
        self._untold = 0
        self.size = 0
        room.came()

    def __del__(self) -> None:
        self._room.went(self)

    def put(self, key: K, value: V, size: int) -> None:
        """Adds a value that is not there yet, unless it is too large; `size` in bytes as the limit counts them."""
        if size > self._bytes:
            return
        if len(self) >= self._entries or self.size + size > self._bytes:
            self._lay_aside()
        self[key] = value
        self.size += size
        if size > _LIGHT:
            self._weigh(key, size)
        self._untold += size + _ENTRY
        if self._untold > self._room.untold:
            self._tell()

    def put_all(self, values: Mapping[K, V], size: int) -> None:
        """Adds values that are not there yet, light ones, if there is ever room for all of them; `size` of all."""
        if size > self._bytes or len(values) > self._entries:
            return
        if len(self) + len(values) > self._entries or self.size + size > self._bytes:
            self._lay_aside()
        self.update(values)
        self.size += size
        self._untold += size + len(values) * _ENTRY
        if self._untold > self._room.untold:
            self._tell()

    def recall(self, key: K) -> V | None:
        """A value that was laid aside, or None."""
        value = self._aside.pop(key, None) if self._aside else None
        if value is not None:
            size = self._aside_heavy.pop(key, self._each) if self._aside_heavy else self._each
            self._aside_size -= size
            self.put(key, value, size)
        return value

    def clear(self) -> None:
        """Drops all entries."""
        super().clear()
        self._aside, self._aside_size = _NONE, 0
        self._heavy = self._aside_heavy = None
        self.size = 0
        self._tell()

    def _weigh(self, key: K, size: int) -> None:
        if self._heavy is None:
            self._heavy = {}
        self._heavy[key] = size

    def _lay_aside(self) -> None:
        self._aside, self._aside_size = dict(self), self.size
        self._aside_heavy, self._heavy = self._heavy, None
        weights = self._aside_heavy.values() if self._aside_heavy else ()
        self._each = (self.size - sum(weights)) // (len(self) - len(weights) or 1)
        super().clear()
        self.size = 0

    def _tell(self) -> None:
        self._untold = 0
        entries = len(self) + len(self._aside)
        self._room.tell(self, self.size + self._aside_size + entries * _ENTRY)
