"""Something that is sent ends the connection: what was asked before is answered first (part 2, section 2.4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Close, Detach, Disposition, Open
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.gateway.protocols.amqp_1_0.transactional import Discharge
from tests.conformance.amqp_1_0.test_transactions import asks, with_deliveries
from tests.support.amqp_1_0_playbook import Playbook, data, framed, sending, transfer

_TWICE = framed(0, Open("client"))  # an illegal state
_NO_FRAME = b"\0\0\0\x04\2\0\0\0"
_FAULTS = pytest.mark.parametrize("fault", [_TWICE, _NO_FRAME], ids=["open twice", "no frame"])


def _left(fault: bytes) -> tuple[Playbook, Any]:
    """A fault behind a message whose outcome is not known; gives what asks for the end."""
    book = Playbook().sender()
    book.waits = {to_broker.EndSessions, to_broker.Close}
    *_, end = book.receives(framed(0, transfer(1), data()) + fault)
    assert isinstance(end, to_broker.Close if fault is _NO_FRAME else to_broker.EndSessions)
    assert book.answers() == []
    assert not book.engine.closing
    return book, end


@_FAULTS
def test_outcomes_come_before_the_close(fault: bytes) -> None:
    """Nothing is sent behind it."""
    book, end = _left(fault)
    book.confirm(1, 1)
    book.serve(end)
    disposition, close = book.answers()
    assert disposition.state == Accepted()
    assert close.error.condition in ("amqp:illegal-state", "amqp:connection:framing-error")
    book.confirm(2, 2)
    assert book.answers() == []


@_FAULTS
def test_a_transaction_that_is_committed(fault: bytes) -> None:
    """Its client hears so."""
    book, _, txn = with_deliveries(b"a")
    book.answers()
    book.waits = {to_broker.Commit, to_broker.EndSessions, to_broker.Close}
    book.receives(framed(0, transfer(200, 5), asks(Discharge(txn))) + fault)
    commit, end = book.asked[-2:]
    book.serve(commit)
    book.serve(end)
    assert [type(each) for each in book.answers()] == [Disposition, Close]


def test_nothing_behind_it_is_asked() -> None:
    """Nor kept. Beats go on until the close is said, which is the last frame (2.4.3, 2.4.5)."""
    book, end = _left(_TWICE)
    assert book.says(0, transfer(2), data()) == []
    assert book.says(0, transfer(3, more=True), data()[:4]) == []
    assert book.says(0, sending("q", 1)) == []
    assert book.says(3, Begin(None, 0, 10, 10)) == []
    assert book.says(0, Detach(0, True)) == []
    assert book.engine.incomplete == 0
    assert book.raw() == b""
    book.engine.beat()
    assert book.raw() == b"\0\0\0\x08\x02\0\0\0"
    book.serve(end)
    assert [type(each) for each in book.answers()] == [Close]
    book.engine.beat()
    assert book.raw() == b""
    assert book.engine.closing


@pytest.mark.parametrize("first", ["sessions", "close"])
def test_the_client_closes_meanwhile(first: str) -> None:
    """Our close says what was wrong, when all is answered, and is the only one."""
    book, end = _left(_TWICE)
    [close] = book.says(0, Close())
    book.confirm(1, 1)
    for request in (end, close) if first == "sessions" else (close, end):
        book.serve(request)
    disposition, closed = book.answers()
    assert isinstance(disposition, Disposition)
    assert closed.error.condition == "amqp:illegal-state"
    assert not book.engine.closing


def test_bytes_behind_it_that_are_no_frames() -> None:
    """What is under way is answered; then the connection ends without the client's farewell."""
    book, end = _left(_TWICE)
    [close] = book.receives(_NO_FRAME)
    assert isinstance(close, to_broker.Close)
    book.serve(end)
    book.confirm(1, 1)
    book.serve(close)
    disposition, closed = book.answers()
    assert isinstance(disposition, Disposition)
    assert closed.error.condition == "amqp:illegal-state"


def test_the_first_of_two_faults_is_told() -> None:
    """The other one changes nothing."""
    book, end = _left(_TWICE)
    assert book.receives(framed(9, Detach(0, True)) + _TWICE) == []
    book.serve(end)
    [close] = book.answers()
    assert "open" in close.error.description


def test_a_session_that_has_not_begun() -> None:
    """It begins, and its link is attached, if there is time."""
    book = Playbook().opened()
    book.waits = {to_broker.OpenSession, to_broker.EndSessions}
    book.receives(framed(0, Begin(None, 0, 10, 10)) + framed(0, sending()) + _TWICE)
    [opened] = [each for each in book.asked if isinstance(each, to_broker.OpenSession)]
    book.serve(opened)
    assert [type(each) for each in book.answers()][:2] == [Begin, Attach]
    book.serve(book.asked[-1])
    assert [type(each) for each in book.answers()] == [Close]
