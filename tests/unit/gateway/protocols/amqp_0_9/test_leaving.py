"""Something that is sent ends the connection: what was asked before is answered first, on every channel."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands, header

from services.common.errors import NotFound, ResourceError, Unavailable
from services.gateway.answers import Deliveries, Got, QueueDeclared, Returned
from services.gateway.outcomes import ACCEPTED, PublishDisposition
from services.gateway.vocabulary import Close, CloseSession, EndSessions, Publish, Request
from tests.support.amqp_playbook import Playbook, content, written
from tests.support.messages import facts

_UNKNOWN = written(1, commands.Basic.Deliver("t", 1, False, "", "q"))  # 503
_OF_CONNECTION = written(0, commands.Connection.TuneOk(0, 0, 0))  # 503
_NO_FRAME = b"\x09\0\1\0\0\0\0\xce"  # 501
_CLOSE = commands.Connection.Close(200, "bye", 0, 0)


def _declare(channel: int) -> bytes:
    return written(channel, commands.Queue.Declare(queue="q"))


def _names(book: Playbook) -> list[str]:
    return [value.name for _, value in book.sent()]


def _leaves(before: bytes, fault: bytes, *channels: int) -> tuple[Playbook, list[Request], Request]:
    """A fault behind these requests; gives what is asked, and what asks for the end."""
    book = Playbook().running(*channels)
    *asked, end = book.engine.receive(before + fault)
    assert isinstance(end, Close) if fault is _NO_FRAME else end == EndSessions(0)
    assert book.raw() == b""
    assert not book.engine.closing
    return book, asked, end


@pytest.mark.parametrize("fault", [_UNKNOWN, _NO_FRAME], ids=["unknown", "no frame"])
def test_answers_come_before_the_close(fault: bytes) -> None:
    """1.4.2.10 connection.close says no more of what was asked before it; so that has been said."""
    get = written(2, commands.Basic.Get(queue="q", no_ack=True))
    book, [declare, got], end = _leaves(_declare(1) + get, fault, 1, 2)
    book.engine.succeed(got, Got(1, False, facts("", "q"), b"\0\0", b"body", 0))
    book.engine.succeed(declare, QueueDeclared("q", 0, 0))
    assert _names(book) == ["Basic.GetOk", "ContentHeader", "ContentBody", "Queue.DeclareOk"]
    book.engine.succeed(end)
    assert _names(book) == ["Connection.Close"]


@pytest.mark.parametrize("fault", [_UNKNOWN, _NO_FRAME], ids=["unknown", "no frame"])
def test_what_became_of_publishes_comes_before_it(fault: bytes) -> None:
    """Returns, and confirms that are known."""
    book = Playbook().running()
    book.does(1, commands.Confirm.Select())
    publish, end = book.engine.receive(content(1, b"x", mandatory=True) + fault)
    assert isinstance(publish, Publish)
    book.engine.returned(1, Returned(publish, [0]))
    book.engine.confirm(1, [PublishDisposition(0, 1, 1, ACCEPTED)])
    book.engine.succeed(end)
    assert _names(book) == ["Basic.Return", "ContentHeader", "ContentBody", "Basic.Ack", "Connection.Close"]


def test_channels_that_end_meanwhile() -> None:
    """That which its client has closed, and that which was refused, hear of their own ends first."""
    refused = content(1, b"x", expiration="soon")
    closed = written(2, commands.Channel.Close(200, "", 0, 0))
    book, [of_1, of_2], end = _leaves(refused + closed, _OF_CONNECTION, 1, 2)
    assert (of_1, of_2) == (CloseSession(1), CloseSession(2))
    for request in (of_2, of_1, end):
        book.engine.succeed(request)
    assert _names(book) == ["Channel.CloseOk", "Channel.Close", "Connection.Close"]


def test_a_channel_that_is_not_open_yet() -> None:
    """open-ok comes first."""
    book, [opened], end = _leaves(written(2, commands.Channel.Open()), _UNKNOWN)
    book.engine.succeed(opened)
    book.engine.succeed(end)
    assert _names(book) == ["Channel.OpenOk", "Connection.Close"]


def test_a_new_secret_is_acknowledged() -> None:
    """The connection's own requests are answered, too."""
    book, [update], end = _leaves(written(0, commands.Connection.UpdateSecret("new", "")), _UNKNOWN)
    book.engine.succeed(update)
    book.engine.succeed(end)
    assert _names(book) == ["Connection.UpdateSecretOk", "Connection.Close"]


def test_something_that_was_asked_before_fails() -> None:
    """Its channel is closed for that: the client hears what failed, and then what was wrong with the connection."""
    book, [declare], end = _leaves(_declare(1), _UNKNOWN)
    book.engine.fail(declare, NotFound("no queue 'q'"))
    assert book.closed_channel() == (404, 50, 10)
    assert book.engine.pending_requests() == [CloseSession(1)]
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 503


def test_the_first_of_two_faults_is_told() -> None:
    """The other one, of something that was asked before or that comes behind, changes nothing."""
    book, [declare], end = _leaves(_declare(1), _UNKNOWN)
    book.engine.fail(declare, Unavailable("no store"))
    assert book.engine.pending_requests() == []
    assert book.engine.receive(_UNKNOWN + written(1, header.ContentHeader())) == []
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 503


def test_bytes_behind_it_that_are_no_frames() -> None:
    """What is under way is still answered; then the connection ends without the client's farewell."""
    book, [declare], end = _leaves(_declare(1), _UNKNOWN)
    close = book.engine.receive(_NO_FRAME)
    assert [type(each) for each in close] == [Close]
    book.engine.succeed(declare, QueueDeclared("q", 0, 0))
    book.engine.succeed(end)
    assert _names(book) == ["Queue.DeclareOk"]
    book.engine.succeed(close[0])
    assert _names(book) == ["Connection.Close"]
    assert not book.engine.closing


def test_beats_go_on() -> None:
    """Until our close is said: a client that waits for a second would cut the connection off before it heard why."""
    book, _, end = _leaves(_declare(1), _UNKNOWN, 1)
    book.engine.beat()
    assert book.raw() == b"\x08\0\0\0\0\0\0\xce"
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 503
    book.engine.beat()
    assert book.raw() == b""


def test_nothing_behind_it_is_asked() -> None:
    """Nor are half a message or half a frame kept: the connection will end."""
    book, _, end = _leaves(written(1, commands.Basic.Publish()), _UNKNOWN, 1, 2)
    begun = written(2, commands.Basic.Publish(), header.ContentHeader(body_size=10), b"12345")
    assert book.engine.receive(_declare(2) + content(1, b"y") + begun + b"\x08\0\0\0\0\0\0\xce") == []
    assert book.engine.incomplete == 0
    book.engine.blocked("low on memory")
    assert book.raw() == b""
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 505


def test_nothing_is_delivered_or_answered_behind_the_close() -> None:
    """Sessions that did not end in time say nothing more."""
    book, [declare], end = _leaves(_declare(1), _UNKNOWN)
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 503
    book.engine.succeed(declare, QueueDeclared("q", 0, 0))
    book.engine.deliver(1, Deliveries("t", 1, 0, [facts("", "q")], [b"\0\0"], [b"x"], 0))
    assert book.raw() == b""
    assert book.engine.closing


@pytest.mark.parametrize("first", ["sessions", "close"])
def test_the_client_closes_meanwhile(first: str) -> None:
    """It hears what was wrong, then close-ok, when all is answered; its answer to ours is not waited for."""
    book, [declare], end = _leaves(_declare(1), _UNKNOWN)
    close: Any = book.asks(0, _CLOSE)
    assert isinstance(close, Close)
    book.engine.succeed(declare, QueueDeclared("q", 0, 0))
    for request in (end, close) if first == "sessions" else (close, end):
        book.engine.succeed(request)
    assert _names(book) == ["Queue.DeclareOk", "Connection.Close", "Connection.CloseOk"]
    assert not book.engine.closing


def test_close_ok_that_comes_too_early() -> None:
    """It answers nothing."""
    book, _, end = _leaves(b"", _UNKNOWN)
    assert book.client(0, commands.Connection.CloseOk()) == []
    book.engine.succeed(end)
    assert book.closed_connection()[0] == 503


def test_it_fails_for_what_the_broker_says() -> None:
    """A request that ends the connection does so when those of other channels are answered."""
    book = Playbook().running(1, 2)
    first, other = book.engine.receive(_declare(1) + _declare(2))
    book.engine.fail(first, ResourceError("too much"))
    [end] = book.engine.pending_requests()
    book.engine.succeed(other, QueueDeclared("q", 0, 0))
    book.engine.succeed(end)
    assert _names(book) == ["Queue.DeclareOk", "Connection.Close"]
