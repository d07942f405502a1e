"""AMQP 1.0, part 4: transactions of a session, any number of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import InDoubt, NotFound, Unavailable
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.sections import VALUE
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import ACCEPTED, FAILED, RELEASED
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Detach, Disposition, End, Flow, Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected, Released
from services.gateway.protocols.amqp_1_0.termini import Source
from services.gateway.protocols.amqp_1_0.transactional import (
    CAPABILITIES,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    TransactionalState,
)
from tests.support.amqp_1_0_playbook import Playbook, credit, data, framed, transfer

_CONTROL = 5  # the handle of the link to the coordinator


def asks(what: Composite) -> bytes:
    """A message whose value it is."""
    return b"\x00\x53" + bytes((VALUE,)) + composite.write(what)


class Book(Playbook):
    """With a link to a coordinator. Its broker numbers transactions from 1."""

    def __init__(self) -> None:
        super().__init__()
        self._declared = 0
        self._controls = 100

    def serve(self, request: to_broker.Request) -> None:
        if isinstance(request, to_broker.DeclareTransaction) and type(request) not in self.refused:
            self._declared += 1
            self.engine.succeed(request, self._declared)
        else:
            super().serve(request)

    def coordinated(self) -> list[Any]:
        """Attaches it; gives the answers."""
        attach = Attach("control", _CONTROL, False, source=Source(), target=Coordinator(), initial_delivery_count=0)
        return self.does(0, attach)

    def control(self, what: Composite) -> list[Any]:
        """Asks the coordinator; gives what is said."""
        self._controls += 1
        return self.does(0, transfer(self._controls, _CONTROL), asks(what))

    def declare(self) -> bytes:
        """Begins a transaction."""
        [said] = self.control(Declare())
        assert isinstance(said.state, Declared)
        return said.state.txn_id

    def did(self, *kinds: type[to_broker.Request]) -> list[to_broker.Request]:
        """What the broker was asked of these kinds."""
        return [each for each in self.asked if isinstance(each, kinds)]


def with_deliveries(*bodies: bytes) -> tuple[Book, str, bytes]:
    """A receiver that was sent these, unsettled, and an open transaction: its tag, and the transaction's id."""
    book = Book()
    tag = book.receiver()
    book.coordinated()
    txn = book.declare()
    book.says(0, credit(10))
    book.deliver(tag, 1, *bodies)
    return book, tag, txn


@pytest.fixture
def book() -> Book:
    """Sends to q by handle 0, and has a coordinator."""
    book = Book()
    book.sender()
    book.coordinated()
    return book


def test_a_coordinator_is_a_target() -> None:
    """Section 4.2: it says what it offers, and gives credit."""
    book = Book()
    book.begun()
    attach, flow = book.coordinated()
    assert attach.target == Coordinator(CAPABILITIES)
    assert isinstance(flow, Flow)
    assert flow.link_credit


def test_posted_in_transactions_that_take_turns(book: Book) -> None:
    """Section 4.4.1: each message says of which it is part; its outcome says so too."""
    first, second = book.declare(), book.declare()
    for number, txn in enumerate((first, second, first)):
        book.says(0, transfer(number, state=TransactionalState(txn)), data())
    published = [(each.transaction, each.first) for each in book.did(to_broker.Publish)]  # type: ignore[attr-defined]
    assert published == [(1, 1), (2, 2), (1, 3)]
    book.confirm(1, 3)
    assert [(each.first, each.last, each.state) for each in book.answers()] == [
        (0, None, TransactionalState(first, Accepted())),
        (1, None, TransactionalState(second, Accepted())),
        (2, None, TransactionalState(first, Accepted())),
    ]
    [said] = book.control(Discharge(first, False))
    assert (said.state, said.settled) == (Accepted(), True)
    [said] = book.control(Discharge(second, True))
    assert said.state == Accepted()
    assert [(type(each), each.transaction) for each in book.did(to_broker.Commit, to_broker.Rollback)] == [  # type: ignore[attr-defined]
        (to_broker.Commit, 1),
        (to_broker.Rollback, 2),
    ]


@pytest.mark.parametrize("settles", [True, False])
def test_retired_and_committed(*, settles: bool) -> None:
    """Section 4.4.2: what is settled in a transaction is so when that is committed; who did not settle is told then."""
    book, _, txn = with_deliveries(b"a", b"b")
    book.answers()
    assert book.does(0, Disposition(True, 0, 1, settles, TransactionalState(txn, Accepted()))) == []
    [settle] = book.did(to_broker.Settle)
    assert settle == to_broker.Settle(1, 1, 2, ACCEPTED, 1)
    *dispositions, said = book.control(Discharge(txn))
    assert said.state == Accepted()
    assert dispositions == ([] if settles else [Disposition(False, 0, 1, True, Accepted())])


def test_retired_and_rolled_back() -> None:
    """What its client has settled goes to others, an attempt; what it has not it may settle otherwise."""
    book, _, txn = with_deliveries(b"a", b"b")
    book.says(0, Disposition(True, 0, 0, True, TransactionalState(txn, Accepted())))
    book.says(0, Disposition(True, 1, 1, False, TransactionalState(txn, Accepted())))
    book.control(Discharge(txn, True))
    book.says(0, Disposition(True, 1, 1, True, Released()))
    assert book.did(to_broker.Settle)[2:] == [
        to_broker.Settle(1, 1, 1, FAILED),
        to_broker.Settle(1, 2, 2, RELEASED),
    ]


@pytest.mark.parametrize("fails", [True, False])
def test_a_second_word_on_what_is_retired(*, fails: bool) -> None:
    """Sections 4.4.2 and 2.6.12: who retires first, and settles then, loses nothing; rolled back, it is for others."""
    book, _, txn = with_deliveries(b"a", b"b")
    for settles in (False, True):
        book.says(0, Disposition(True, 0, 1, settles, TransactionalState(txn, Accepted())))
    said = book.control(Discharge(txn, fails))[-1]
    assert said.state == Accepted()
    assert book.did(to_broker.Settle)[1:] == ([to_broker.Settle(1, 1, 2, FAILED)] if fails else [])


def test_a_second_word_behind_the_discharge() -> None:
    """What was retired in a transaction that is being discharged may be settled by its client meanwhile."""
    book, _, txn = with_deliveries(b"a")
    book.says(0, Disposition(True, 0, 0, False, TransactionalState(txn, Accepted())))
    book.answers()
    book.waits = {to_broker.Commit}
    book.receives(framed(0, transfer(200, _CONTROL), asks(Discharge(txn))))
    assert book.does(0, Disposition(True, 0, 0, True, TransactionalState(txn, Accepted()))) == []


def test_rolled_back_and_ended_at_once() -> None:
    """What its session's number means when the broker has rolled back is the next session: that is told nothing."""
    book, _, txn = with_deliveries(b"a")
    book.says(0, Disposition(True, 0, 0, True, TransactionalState(txn, Accepted())))
    discharge = framed(0, transfer(200, _CONTROL), asks(Discharge(txn, True)))
    book.waits = {to_broker.Rollback, to_broker.CloseSession, to_broker.OpenSession}
    book.receives(discharge + framed(0, End()) + framed(0, Begin(None, 0, 10, 10)))
    assert [type(each) for each in book.asked[-3:]] == [
        to_broker.Rollback,
        to_broker.CloseSession,
        to_broker.OpenSession,
    ]
    book.serve(book.asked[-3])
    book.asked += book.engine.pending_requests()
    assert len(book.did(to_broker.Settle)) == 1


def test_what_is_retired_on_a_link_that_has_ended() -> None:
    """It is committed all the same; rolled back, it goes to others."""
    book, _, txn = with_deliveries(b"a")
    book.says(0, Disposition(True, 0, 0, False, TransactionalState(txn, Accepted())))
    book.says(0, Detach(0, True))
    assert len(book.did(to_broker.Settle)) == 1
    book.control(Discharge(txn, True))
    assert book.did(to_broker.Settle)[1:] == [to_broker.Settle(1, 1, 1, FAILED)]


def test_a_coordinator_that_ends_rolls_back(book: Book) -> None:
    """Section 4.2: what is not discharged is rolled back, before the detach is answered."""
    book.declare()
    book.declare()
    book.waits.add(to_broker.Rollback)
    book.waits.add(to_broker.Echo)
    assert book.does(0, Detach(_CONTROL, True)) == []
    rollbacks = book.did(to_broker.Rollback)
    assert [each.transaction for each in rollbacks] == [1, 2]  # type: ignore[attr-defined]
    for each in (*rollbacks, *book.did(to_broker.Echo)):
        book.serve(each)
    assert book.answers() == [Detach(_CONTROL, True)]


def test_an_unknown_transaction(book: Book) -> None:
    """Section 4.5.8: a discharge of it is rejected; a message in it ends its link."""
    [said] = book.control(Discharge(b"none"))
    assert said.state.error.condition == "amqp:transaction:unknown-id"
    [detach] = book.does(0, transfer(0, state=TransactionalState(b"none")), data())
    assert detach.error.condition == "amqp:transaction:unknown-id"


def test_a_discharged_transaction_is_over(book: Book) -> None:
    """Nothing is part of it any more."""
    txn = book.declare()
    book.control(Discharge(txn))
    [said] = book.control(Discharge(txn))
    assert isinstance(said.state, Rejected)
    [detach] = book.does(0, transfer(0, state=TransactionalState(txn)), data())
    assert detach.error.condition == "amqp:transaction:unknown-id"


def test_what_cannot_be_committed(book: Book) -> None:
    """Section 4.3: the discharge is rejected, and the link goes on."""
    txn = book.declare()
    book.refused[to_broker.Commit] = Unavailable("a queue has no owner")
    [said] = book.control(Discharge(txn))
    assert said.state.error.condition == "amqp:transaction:rollback"
    assert book.declare() != txn


def test_a_message_that_is_none(book: Book) -> None:
    """With it the transaction cannot be committed: it would not be whole."""
    txn = book.declare()
    [said] = book.does(0, transfer(0, state=TransactionalState(txn)), b"none")
    assert isinstance(said.state, Rejected)
    [said] = book.control(Discharge(txn))
    assert said.state.error.condition == "amqp:transaction:rollback"
    assert book.did(to_broker.Commit) == []


@pytest.mark.parametrize(
    "wrong",
    [
        Transfer(0, 1, b"1", 1),  # a message-format
        Transfer(0, 1, None, 0),
        transfer(1, resume=True),
    ],
)
def test_a_message_that_ends_its_link(book: Book, wrong: Transfer) -> None:
    """Section 4.4.1: half of a transaction is not committed, when its messages and its discharge come in a row."""
    txn = book.declare()
    its = TransactionalState(txn)
    book.says(0, transfer(0, state=its), data())
    book.says(0, replace(wrong, state=its), data())
    book.says(0, transfer(2, state=its), data())
    assert book.control(Discharge(txn))[-1].state.error.condition == "amqp:transaction:rollback"
    assert book.did(to_broker.Commit) == []


def test_a_message_that_is_ignored(book: Book) -> None:
    """The same of one that comes before its peer has heard that the link had ended."""
    book.does(0, Transfer(0, 0, b"0", 1), data())
    txn = book.declare()
    book.says(0, transfer(1, state=TransactionalState(txn)), data())
    [said] = book.control(Discharge(txn))
    assert said.state.error.condition == "amqp:transaction:rollback"


@pytest.mark.parametrize("stolen", [True, False])
def test_retired_when_it_was_anothers(*, stolen: bool) -> None:
    """Section 4.4.2: its link has ended, of which its client had not heard: it would be done with, and come again."""
    book, tag, txn = with_deliveries(b"a")
    book.engine.cancelled(1, tag, stolen=stolen)
    book.says(0, Disposition(True, 0, 0, True, TransactionalState(txn, Accepted())))
    assert book.control(Discharge(txn))[-1].state.error.condition == "amqp:transaction:rollback"
    assert book.did(to_broker.Commit) == []


def test_retired_in_no_transaction() -> None:
    """Section 4.5.8: also where nothing is left to be settled."""
    book = Book()
    book.receiver()
    book.coordinated()
    [end] = book.does(0, Disposition(True, 0, 0, True, TransactionalState(b"none", Accepted())))
    assert end.error.condition == "amqp:transaction:unknown-id"


def test_in_doubt(book: Book) -> None:
    """What nobody knows is not told: the session ends."""
    txn = book.declare()
    book.refused[to_broker.Commit] = InDoubt("the store is away")
    said = book.control(Discharge(txn))
    assert [type(each) for each in said] == [End]


def test_too_many(book: Book) -> None:
    """A declare that is refused is rejected."""
    book.refused[to_broker.DeclareTransaction] = NotFound("no more")
    [said] = book.control(Declare())
    assert isinstance(said.state, Rejected)


@pytest.mark.parametrize("what", [Declare(b"global"), Accepted()])
def test_what_a_coordinator_does_not_take(book: Book, what: Composite) -> None:
    """Distributed transactions are not offered; other messages are none for it."""
    said = book.control(what)
    assert isinstance(said[-1], Detach)


def test_a_declare_is_not_settled(book: Book) -> None:
    """Section 4.2: nobody would know its transaction."""
    [detach] = book.does(0, Transfer(_CONTROL, 7, b"7", 0, settled=True), asks(Declare()))
    assert isinstance(detach, Detach)


def test_held_back_publishers_discharge(book: Book) -> None:
    """A coordinator has credit while publishers have none: what was posted may be what the queues wait for."""
    book.engine.blocked("full")
    flows = [each for each in book.answers() if isinstance(each, Flow)]
    assert [(each.handle, each.link_credit) for each in flows] == [(0, 0)]
    assert v.Symbol("amqp:local-transactions") in map(v.Symbol, CAPABILITIES)
    assert book.declare()
