"""The available entries of a queue, in the order in which its type hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from services.queue.machine import turn
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry
from services.queue.machine.options import QueueOptions


class Ready(Protocol):
    """See EntryList, the plain one. `displaces`: newcomers may drive out others, which `take_displaced` gives."""

    displaces: bool

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

    def passed_by(self, arrival: Arrival, count: int, position: int) -> None:
        """The first `count` messages, at `position` and following, were delivered past the list."""

    def take_displaced(self) -> list[Entry]:
        """Since the last time."""


class Arriving:
    """An order in which newcomers leave the others alone."""

    __slots__ = ()

    displaces = False

    def passed_by(self, arrival: Arrival, count: int, position: int) -> None:
        """They are no affair of those that wait."""

    def take_displaced(self) -> list[Entry]:
        """Nothing ever."""
        return []


IsHeld: TypeAlias = Callable[[int], bool]
"""Whether somebody holds the message with a uid."""


class CreateReady(Protocol):
    """A queue type, as the plug-ins of group `queue_types` are: it says in which order entries leave."""

    def __call__(self, options: QueueOptions, is_held: IsHeld) -> Ready: ...


def overdue(ready: Ready, now: int) -> list[Entry]:
    """Takes from the front what is past its time, as much as goes in one turn."""
    taken: list[Entry] = []
    while len(taken) < turn.AT_ONCE and (head := ready.peek()) is not None and 0 < head.expires <= now:
        ready.pop()
        taken.append(head)
    return taken


def too_much(ready: Ready, options: QueueOptions) -> list[Entry]:
    """Takes from the front what is more than the options allow."""
    taken: list[Entry] = []
    while (options.max_length is not None and ready.count > options.max_length) or (
        options.max_bytes is not None and ready.size > options.max_bytes
    ):
        entry = ready.pop()
        if entry is None:
            break
        taken.append(entry)
    return taken
