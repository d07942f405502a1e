"""The transactions of one session: its own, of protocols that have one each, and those that its client declares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from services.common.errors import PreconditionFailed, ResourceError
from services.gateway.sessions.transaction import OpenTransactions, PendingSettlement, Transaction

OWN: Final = 0
"""The number of a session's own: once selected there is always one, and what names no other is part of it."""

MOST: Final = 1000
"""Transactions that a session may have declared at a time."""


class Transactions:
    """By number; no number is used twice."""

    __slots__ = ("_by_number", "_numbers")

    def __init__(self) -> None:
        self._by_number: dict[int, Transaction] = {}
        self._numbers = count(OWN + 1)

    def __bool__(self) -> bool:
        """Whether any is open."""
        return bool(self._by_number)

    def select(self, room: OpenTransactions) -> None:
        """There is one of the session's own from now on."""
        if OWN not in self._by_number:
            self._by_number[OWN] = Transaction(room)

    @property
    def selected(self) -> bool:
        """Whether there is one of the session's own."""
        return OWN in self._by_number

    def declare(self, room: OpenTransactions) -> int:
        """Begins one, and gives its number. Raises ResourceError."""
        if len(self._by_number) >= MOST:
            raise ResourceError(f"a session has at most {MOST} transactions at a time")
        number = next(self._numbers)
        self._by_number[number] = Transaction(room)
        return number

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
        former = self._by_number.pop(number, None)
        if former and number == OWN:
            self._by_number[OWN] = Transaction(former.open)

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
        self._by_number.clear()
