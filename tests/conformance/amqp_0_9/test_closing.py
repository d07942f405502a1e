"""What a close ends, and what it does not: transcripts, bytes in and bytes out (sections 1.4.2.10 and 1.5.2.5)."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands, header

from services.common.errors import BrokerError, NotFound, Unavailable
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.outcomes import ACCEPTED, PublishDisposition
from tests.support.amqp_playbook import Playbook, content, written
from tests.support.messages import facts

_CONNECTION_CLOSE = written(0, commands.Connection.Close(200, "bye", 0, 0))
_CHANNEL_CLOSE = written(1, commands.Channel.Close(200, "bye", 0, 0))
_DECLARE = written(1, commands.Queue.Declare(queue="q"))
_GET = written(1, commands.Basic.Get(queue="q"))
_PUBLISH = content(1, b"x", exchange="no-such")


def _names(book: Playbook) -> list[str]:
    return [value.name for _, value in book.sent()]


def _carry_out(book: Playbook, requests: list[v.Request], outcomes: dict[type[v.Request], Any]) -> None:
    """As the broker: one after the other, the close of the connection last; an error is an outcome too."""
    for request in requests:
        outcome = outcomes.get(type(request))
        if isinstance(outcome, BrokerError):
            book.engine.fail(request, outcome)
        elif not isinstance(request, v.Publish):
            book.engine.succeed(request, outcome)


@pytest.mark.specification("1.4.2.10")
@pytest.mark.parametrize("close", [_CHANNEL_CLOSE, _CONNECTION_CLOSE], ids=["channel", "connection"])
def test_what_comes_before_a_close_is_answered_before_it(close: bytes) -> None:
    """declare-ok and get-ok with its content, in their order, then close-ok; nothing of what comes behind the close."""
    book = Playbook().running()
    outcomes = {
        v.DeclareQueue: answers.QueueDeclared("q", 1, 0),
        v.Get: answers.Got(1, False, facts("", "q"), b"\0\0", b"body", 0),
    }
    requests = book.engine.receive(_DECLARE + _GET + close + _DECLARE)
    assert [type(request).__name__ for request in requests[:2]] == ["DeclareQueue", "Get"]
    assert len(requests) == 3
    assert book.raw() == b""
    _carry_out(book, requests, outcomes)
    kind = "Channel" if close is _CHANNEL_CLOSE else "Connection"
    assert _names(book) == ["Queue.DeclareOk", "Basic.GetOk", "ContentHeader", "ContentBody", f"{kind}.CloseOk"]


@pytest.mark.specification("1.4.2.10")
@pytest.mark.parametrize("close", [_CHANNEL_CLOSE, _CONNECTION_CLOSE], ids=["channel", "connection"])
def test_an_error_of_what_came_before_crosses_the_close(close: bytes) -> None:
    """A publisher to a missing exchange that closes at once hears channel.close with 404, then its close-ok."""
    book = Playbook().running()
    requests = book.engine.receive(_PUBLISH + close)
    _carry_out(book, requests, {v.Publish: NotFound("no exchange 'no-such' in vhost '/'")})
    (_, refusal), (_, close_ok) = book.sent()
    assert (refusal.name, refusal.reply_code, refusal.class_id, refusal.method_id) == ("Channel.Close", 404, 60, 40)
    assert close_ok.name == ("Channel.CloseOk" if close is _CHANNEL_CLOSE else "Connection.CloseOk")


@pytest.mark.specification("1.4.2.10")
def test_an_error_of_the_connection_crosses_its_close() -> None:
    """connection.close with what was wrong, then close-ok: the client's answer to ours is not waited for."""
    book = Playbook().running()
    declare, close = book.engine.receive(_DECLARE + _CONNECTION_CLOSE)
    book.engine.fail(declare, Unavailable("no store"))
    assert book.engine.pending_requests() == []
    assert book.raw() == b""
    assert not book.engine.closing
    book.engine.succeed(close)
    assert _names(book) == ["Connection.Close", "Connection.CloseOk"]


@pytest.mark.specification("1.4.2.10")
def test_confirms_and_returns_that_are_known_come_before_close_ok() -> None:
    """Of publishes before connection.close."""
    book = Playbook().running()
    book.does(1, commands.Confirm.Select())
    publish, close = book.engine.receive(content(1, b"x", mandatory=True) + _CONNECTION_CLOSE)
    assert isinstance(publish, v.Publish)
    book.engine.returned(1, answers.Returned(publish, [0]))
    book.engine.confirm(1, [PublishDisposition(0, 1, 1, ACCEPTED)])
    book.engine.succeed(close)
    assert _names(book) == ["Basic.Return", "ContentHeader", "ContentBody", "Basic.Ack", "Connection.CloseOk"]


@pytest.mark.specification("1.4.2.10")
def test_a_message_that_is_cut_off_by_the_close() -> None:
    """Half a publish in front of connection.close is nothing, and takes no memory."""
    book = Playbook().running()
    begun = written(1, commands.Basic.Publish(routing_key="q"), header.ContentHeader(body_size=10), b"12345")
    [close] = book.engine.receive(begun + _CONNECTION_CLOSE)
    assert book.engine.incomplete == 0
    book.engine.succeed(close)
    assert _names(book) == ["Connection.CloseOk"]


@pytest.mark.specification("1.4.2.10")
@pytest.mark.parametrize("data", [b"\xff" * 20, _CONNECTION_CLOSE, _DECLARE], ids=["garbage", "close", "declare"])
def test_nothing_behind_the_close_matters(data: bytes) -> None:
    """Neither in the same bytes nor later, before close-ok or after it."""
    book = Playbook().running()
    [close] = book.engine.receive(_CONNECTION_CLOSE + data)
    assert book.engine.receive(data) == []
    book.engine.succeed(close)
    assert book.engine.receive(data) == []
    assert _names(book) == ["Connection.CloseOk"]
