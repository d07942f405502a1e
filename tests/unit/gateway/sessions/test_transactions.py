"""The transactions of one session: its own, and those that are declared."""

from __future__ import annotations

import pytest

from services.common.clients.change import UNCHANGED, Change
from services.common.errors import PreconditionFailed, ResourceError
from services.gateway.sessions.transaction import OpenTransactions, Transaction
from services.gateway.sessions.transactions import MOST, OWN, Transactions


@pytest.fixture
def room() -> OpenTransactions:
    """Enough."""
    return OpenTransactions(1 << 20)


def test_each_has_a_number_of_its_own(room: OpenTransactions) -> None:
    """That comes never again: what is said late is said of none."""
    its = Transactions()
    first = its.declare(room)
    its.ended(first)
    second = its.declare(room)
    assert first != second
    with pytest.raises(PreconditionFailed):
        its.of(first)
    assert its.of(second) is its.under_way(second)


def test_without_one_nothing_is_part_of_any(room: OpenTransactions) -> None:
    """What names none is part of the session's own, once that was selected."""
    its = Transactions()
    assert its.of(OWN) is None
    with pytest.raises(PreconditionFailed):
        its.under_way(OWN)
    its.declare(room)
    assert its.of(OWN) is None
    assert not its.selected
    its.select(room)
    assert its.of(OWN) is its.under_way(OWN)


def test_behind_the_sessions_own_comes_the_next(room: OpenTransactions) -> None:
    """AMQP 0-9-1, section 1.9.2.3: a commit begins a new one."""
    its = Transactions()
    its.select(room)
    former = its.under_way(OWN)
    its.ended(OWN)
    assert its.under_way(OWN) is not former


def test_there_are_not_too_many(room: OpenTransactions) -> None:
    """Each takes memory, though it holds nothing."""
    its = Transactions()
    numbers = [its.declare(room) for _ in range(MOST)]
    with pytest.raises(ResourceError):
        its.declare(room)
    its.ended(numbers[0])
    assert its.declare(room) == MOST + 1


def test_what_is_said_of_deliveries_weighs() -> None:
    """Annotations take memory until the commit, as messages do: where it is too much nothing is committed."""
    room = OpenTransactions(100)
    transaction = Transaction(room)
    transaction.grow(60)
    assert transaction.fault is None
    transaction.grow(60)
    assert isinstance(transaction.fault, PreconditionFailed)
    transaction.rolled_back()
    assert room.used == 0


def test_annotations_are_for_few_messages() -> None:
    """A queue process writes all of those anew at once: where they are too many nothing is committed."""
    transaction, said = Transaction(OpenTransactions(1 << 20)), Change(b"some")
    assert transaction.keeps(said, 19) is said
    assert transaction.keeps(Change(not_again=True), 1000) == Change(not_again=True)
    assert (transaction.keeps(said, 1), transaction.fault) == (said, None)
    assert transaction.keeps(said, 1) is UNCHANGED
    assert isinstance(transaction.fault, PreconditionFailed)


@pytest.mark.parametrize("room", [OpenTransactions(100), OpenTransactions(1 << 40)], ids=["all", "one"])
def test_what_is_not_committed_takes_no_memory(monkeypatch: pytest.MonkeyPatch, room: OpenTransactions) -> None:
    """Other clients' transactions have it, and it is kept no more, whatever is said of deliveries yet."""
    monkeypatch.setattr("services.gateway.sessions.transaction._LARGEST", 100)
    transaction, said = Transaction(room), Change(b"x" * 60)
    assert transaction.keeps(said, 1) is said
    assert [transaction.keeps(said, 1) for _ in range(30)] == [UNCHANGED] * 30
    assert isinstance(transaction.fault, PreconditionFailed)
    assert room.used == 120
    transaction.rolled_back()
    assert room.used == 0
