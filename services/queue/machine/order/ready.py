"""The available entries of a queue, in the order in which its type hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

from services.queue.machine import turn
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry
from services.queue.machine.options import QueueOptions
from services.queue.machine.order.parcel import Parcel
from services.queue.machine.order.steps import Steps


class Ready(Protocol):
    """See EntryList, the plain one. `displaces`: newcomers may drive out others, which `take_displaced` gives.

    `by_arrival`: entries leave in the order in which they came. `takes_parcels`: it is the plain one itself, in which
    messages may wait in columns.
    """

    displaces: bool
    by_arrival: bool
    takes_parcels: bool

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

    def take_before(self, position: int, most: int) -> list[Entry]:
        """Acquires the first of those that stand before a position, so many at most, and takes them out."""

    def withdraw(self, entry: Entry) -> Entry:
        """Takes out one that waits, wherever it stands; gives it, or what is the same from now on."""

    def clear(self) -> list[Entry]: ...

    def view(self, seen: int) -> Iterator[Entry]: ...

    def steps(self, seen: Any, before: int) -> Steps:  # noqa: ANN401 - an order's own
        """Of those behind a rank (None: all) that stand before a position."""

    def rank(self, entry: Entry) -> Any:  # noqa: ANN401 - an order's own
        """Its place in the order, for good: what is less leaves first."""

    def worth(self, entry: Entry) -> Any:  # noqa: ANN401 - the same
        """Its place among those of which the first goes when there is too much, whoever has it."""

    def selectable(self) -> Selectable:
        """The same entries for consumers that choose: made in no time, however many there are."""

    def passed_by(self, arrival: Arrival, count: int, position: int) -> None:
        """The first `count` messages, at `position` and following, were delivered past the list."""

    def take_displaced(self) -> list[Entry]:
        """Since the last time."""

    def wait(self, parcel: Parcel, size: int) -> None:
        """Appends new messages in columns, where it takes them; `size` is that of their bodies."""

    def parcel(self) -> Parcel | None:
        """The parcel that is next, if one is."""

    def taken_from(self, parcel: Parcel, end: int, size: int) -> None:
        """Those before an index were taken out of the one that is next; `size` is that of their bodies."""

    def take_parcels(self) -> list[Parcel]:
        """All of them, of a queue that ends: its `size` is none any more."""


class Fresh(NamedTuple):
    """An entry that has come in; `back`: it was there before, and somebody had it."""

    entry: Entry
    back: bool


class Selectable(Ready, Protocol):
    """Entries of which consumers choose. Those in front have been looked at; nothing behind them leaves before."""

    def further(self, most: int) -> list[Entry]:
        """The next ones that nobody has looked at: they are in front from now on."""

    def after(self, rank: Any) -> Iterator[Entry]:  # noqa: ANN401 - an order's own
        """Those in front that are behind `rank` (None: all), in order. Ends when the list is changed under it."""

    def choose(self, entry: Entry) -> None:
        """Acquires one of those in front, and takes it out."""

    def before(self, rank: Any) -> Any:  # noqa: ANN401 - an order's own
        """The rank of the last one in front that is before `rank`, or None."""

    @property
    def edge(self) -> Any:  # noqa: ANN401 - an order's own
        """The highest rank that was ever in front: what is behind it has not been looked at. None: nothing was."""

    @property
    def nothing_new(self) -> bool:
        """Whether all of it is in front, and `take_fresh` has given what came in there."""

    def take_fresh(self) -> list[Fresh]:
        """Those that have come in among those in front since the last time."""

    def plain(self) -> Ready:
        """What it was made of, once nothing is in front any more; till then itself."""


class EntriesOnly:
    """An order that takes no parcels."""

    __slots__ = ()

    takes_parcels = False

    def wait(self, parcel: Parcel, size: int) -> None:
        """Never: there are entries only."""

    def parcel(self) -> Parcel | None:
        """There is none."""
        return None

    def taken_from(self, parcel: Parcel, end: int, size: int) -> None:
        """Never."""

    def take_parcels(self) -> list[Parcel]:
        """There are none, or they are of a list behind, and are entries when they leave it."""
        return []


class Arriving(EntriesOnly):
    """An order in which newcomers leave the others alone."""

    __slots__ = ()

    displaces = False
    by_arrival = True

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


class Waiting(Protocol):
    """What waits, one after the other."""

    @property
    def count(self) -> int: ...

    @property
    def size(self) -> int: ...

    def pop(self) -> Entry | None: ...


def is_over(waiting: Waiting, options: QueueOptions) -> bool:
    """Whether more waits than the options allow."""
    return (options.max_length is not None and waiting.count > options.max_length) or (
        options.max_bytes is not None and waiting.size > options.max_bytes
    )


def too_much(waiting: Waiting, options: QueueOptions) -> list[Entry]:
    """Takes from the front what is more than the options allow, as much as goes in one turn."""
    taken: list[Entry] = []
    while len(taken) < turn.AT_ONCE and is_over(waiting, options):
        entry = waiting.pop()
        if entry is None:
            break
        taken.append(entry)
    return taken
