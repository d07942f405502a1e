"""Who may want a message: found by a property's value where consumers compare one for equality, by asking else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from services.common.selectors.message import MessageView
from services.common.selectors.term import Equality
from services.queue.machine.delivery.cursor import Cursor


class Choosers:
    """Of the cursors of a queue; each is in one list."""

    __slots__ = ("_by_value", "_names", "_others")

    def __init__(self) -> None:
        self._names: dict[str, int] = {}  # identifiers that some compare, and how many do
        self._by_value: dict[Equality, list[Cursor]] = {}
        self._others: list[Cursor] = []

    @property
    def names(self) -> frozenset[str]:
        """The identifiers that some compare."""
        return frozenset(self._names)

    def add(self, cursor: Cursor) -> None:
        """One that has come."""
        if key := key_of(cursor):
            self._names[key.name] = self._names.get(key.name, 0) + 1
            self._by_value.setdefault(key, []).append(cursor)
        else:
            self._others.append(cursor)

    def remove(self, cursor: Cursor) -> None:
        """One that has gone."""
        key = key_of(cursor)
        if key is None:
            self._others.remove(cursor)
            return
        self._by_value[key].remove(cursor)
        if not self._by_value[key]:
            del self._by_value[key]
        self._names[key.name] -= 1
        if not self._names[key.name]:
            del self._names[key.name]

    def of(self, view: MessageView) -> Iterator[Cursor]:
        """Those who may want it: all who do are among them."""
        for name in self._names:
            yield from self._by_value.get(Equality.of(name, view.look_up(name)), ())
        yield from self._others


def key_of(cursor: Cursor) -> Equality | None:
    """What its messages can be found by; the same one each time."""
    interest = cursor.consumer.interest
    return min(interest.required, key=_order, default=None) if interest else None


def _order(equality: Equality) -> tuple[str, str]:
    return equality.name, repr(equality.value)


def best_first(cursors: Iterable[Cursor]) -> list[Cursor]:
    """In the order in which they are to be asked: by priority, then who has waited longest."""
    return sorted(cursors, key=_turn)


def _turn(cursor: Cursor) -> tuple[int, int]:
    return -cursor.consumer.priority, cursor.served
