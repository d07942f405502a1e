"""The available entries of a queue, in the order in which its type hands them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from services.queue.entry import Entry


class Ready(Protocol):
    """See EntryList, the plain one."""

    @property
    def count(self) -> int: ...

    @property
    def size(self) -> int: ...

    def extend(self, entries: Iterable[Entry], size: int) -> None: ...

    def put_back(self, entries: list[Entry]) -> None: ...

    def peek(self) -> Entry | None: ...

    def pop(self) -> Entry | None: ...

    def take(self, limit: int, size: int, now: int, expired: list[Entry]) -> list[Entry]: ...

    def acquire(self, uids: set[int]) -> list[Entry]: ...

    def clear(self) -> list[Entry]: ...

    def view(self, seen: int) -> Iterator[Entry]: ...
