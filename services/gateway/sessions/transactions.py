"""The transactions of one session: its own, of protocols that have one each, and those that its client declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from services.common.errors import PreconditionFailed, ResourceError
from services.gateway.sessions.transaction import OpenTransactions, PendingSettlement, Transaction

OWN: Final = 0
"""The number of a session's own: once selected there is always one, and what names no other is part of it."""

MOST: Final = 1000
"""Transactions that a session may have declared at a time."""

_NONE: Final[Mapping[int, Transaction]] = MappingProxyType({})


class Transactions:
    """By number; no number is used twice. Most sessions never have one, and take no memory for it."""

    __slots__ = ("_by_number", "_last")

    def __init__(self) -> None:
        self._by_number: Mapping[int, Transaction] = _NONE
        self._last = OWN

    def __bool__(self) -> bool:
        """Whether any is open."""
        return bool(self._by_number)

    def select(self, room: OpenTransactions) -> None:
        """There is one of the session's own from now on."""
        if OWN not in self._by_number:
            self._begin(OWN, room)

    def _begin(self, number: int, room: OpenTransactions) -> None:
        self._by_number = {**self._by_number, number: Transaction(room)}

    @property
    def selected(self) -> bool:
        """Whether there is one of the session's own."""
        return OWN in self._by_number

    def declare(self, room: OpenTransactions) -> int:
        """Begins one, and gives its number. Raises ResourceError."""
        if len(self._by_number) >= MOST:
            raise ResourceError(f"a session has at most {MOST} transactions at a time")
        self._last += 1
        self._begin(self._last, room)
        return self._last

    def of(self, number: int) -> Transaction | None:
        """That which a publish or a settlement is part of, if any. Raises PreconditionFailed for an unknown one."""
        found = self._by_number.get(number)
        if found is None and number:
            raise PreconditionFailed(f"no transaction {number} is open")
        return found

    def under_way(self, number: int) -> Transaction:
        """That which is to end. Raises PreconditionFailed where there is none."""
        if (found := self.of(number)) is None:
            raise PreconditionFailed("channel is not transactional: tx.select comes first")
        return found

    def ended(self, number: int) -> None:
        """It is decided. Behind the session's own comes the next one."""
        former = self._by_number.get(number)
        self._by_number = {other: its for other, its in self._by_number.items() if other != number} or _NONE
        if former and number == OWN:
            self._begin(OWN, former.open)

    @property
    def settlements(self) -> Iterator[PendingSettlement]:
        """What waits in any of them to be settled."""
        for each in self._by_number.values():
            yield from each.settlements

    @property
    def settling(self) -> int:
        """How many those are."""
        return sum(len(each.settlements) for each in self._by_number.values())

    def roll_back(self) -> None:
        """The session is gone, and all of them with it."""
        for each in self._by_number.values():
            each.rolled_back()
        self._by_number = _NONE
