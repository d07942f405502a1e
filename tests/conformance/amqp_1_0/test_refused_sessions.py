"""Something that is sent ends its session: what was asked of that before is answered first (part 2, section 2.5.7)."""

from __future__ import annotations

import pytest

from services.common.errors import InDoubt
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.performatives import Begin, Detach, Disposition, End
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.gateway.protocols.amqp_1_0.transactional import Discharge
from tests.conformance.amqp_1_0.test_transactions import asks, with_deliveries
from tests.support.amqp_1_0_playbook import Playbook, data, framed, sending, transfer

_FAULT = Detach(7, True)  # of a handle that is not attached
_WHY = "amqp:session:unattached-handle"


def _refused() -> Playbook:
    """A fault behind a message whose outcome is not known."""
    book = Playbook().sender()
    book.says(0, transfer(1), data())
    book.waits = {to_broker.CloseSession, to_broker.OpenSession}
    assert book.says(0, _FAULT) == [to_broker.CloseSession(1)]
    assert book.answers() == []
    return book


def _close(book: Playbook) -> None:
    """The broker has ended it."""
    [close] = [each for each in book.asked if isinstance(each, to_broker.CloseSession)]
    book.serve(close)


def test_outcomes_come_before_the_end() -> None:
    """Nothing is sent behind it; its channel is free when the peer has answered."""
    book = _refused()
    book.confirm(1, 1)
    _close(book)
    disposition, end = book.answers()
    assert disposition.state == Accepted()
    assert end.error.condition == _WHY
    book.confirm(2, 2)
    assert book.does(0, End()) == []
    book.waits = set()
    [begin] = book.does(0, Begin(None, 0, 10, 10))
    assert begin.remote_channel == 0


def test_a_transaction_that_is_committed() -> None:
    """Its client hears so."""
    book, _, txn = with_deliveries(b"a")
    book.answers()
    book.waits = {to_broker.Commit, to_broker.CloseSession}
    book.receives(framed(0, transfer(200, 5), asks(Discharge(txn))) + framed(0, _FAULT))
    commit, close = book.asked[-2:]
    book.serve(commit)
    book.serve(close)
    assert [type(each) for each in book.answers()] == [Disposition, End]


def test_a_transaction_in_doubt() -> None:
    """The session ends for that, once."""
    book, _, txn = with_deliveries(b"a")
    book.answers()
    book.waits = {to_broker.Commit, to_broker.CloseSession}
    book.receives(framed(0, transfer(200, 5), asks(Discharge(txn))) + framed(0, _FAULT))
    book.engine.fail(book.asked[-2], InDoubt("nobody knows"))
    [end] = book.answers()
    assert "nobody knows" in end.error.description
    assert book.engine.pending_requests() == []
    book.serve(book.asked[-1])
    assert book.answers() == []


def test_nothing_behind_it_is_asked() -> None:
    """Nor kept."""
    book = _refused()
    assert book.says(0, transfer(2), data()) == []
    assert book.says(0, transfer(3, more=True), data()[:4]) == []
    assert book.says(0, sending("q", 1)) == []
    assert book.says(0, _FAULT) == []
    assert book.engine.incomplete == 0
    _close(book)
    [session] = book.engine._sessions.values()
    assert (session._links, session._ours, session._consumers) == ({}, {}, {})
    assert (book.engine._peer.links, book.engine._peer.asked) == ({}, {})


@pytest.mark.parametrize("again", [True, False])
def test_the_client_ends_it_meanwhile(again: bool) -> None:
    """Our end says what was wrong, when all is answered, and is the only one; the channel may be the next one's."""
    book = _refused()
    assert book.does(0, End()) == []
    if again:
        assert book.does(0, Begin(None, 0, 10, 10)) == []
    book.confirm(1, 1)
    _close(book)
    disposition, end = book.answers()
    assert isinstance(disposition, Disposition)
    assert end.error.condition == _WHY
    book.waits = set()
    if again:
        book.serve(next(each for each in reversed(book.asked) if isinstance(each, to_broker.OpenSession)))
        [begin] = book.answers()
    else:
        [begin] = book.does(0, Begin(None, 0, 10, 10))
    assert begin.remote_channel == 0


def test_a_session_that_has_not_begun() -> None:
    """It begins first."""
    book = Playbook().opened()
    book.waits = {to_broker.OpenSession}
    book.receives(framed(0, Begin(None, 0, 10, 10)) + framed(0, _FAULT))
    book.serve(next(each for each in book.asked if isinstance(each, to_broker.OpenSession)))
    assert [type(each) for each in book.answers()] == [Begin, End]
