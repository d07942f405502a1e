"""Methods of a channel: what each asks of the broker, and how each is answered."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands, header

from services.common.errors import AccessRefused, NotFound, PreconditionFailed, ResourceError, Unavailable
from services.gateway import answers
from services.gateway import vocabulary as v
from tests.support.amqp_playbook import Playbook, content
from tests.support.messages import facts

_ASKED: list[tuple[Any, v.Request, Any, str]] = [
    (commands.Channel.Flow(False), v.Flow(1, False), None, "Channel.FlowOk"),
    (
        commands.Exchange.Declare(exchange="e", exchange_type="topic", durable=True, arguments={"a": 1}),
        v.DeclareExchange(1, "e", "topic", durable=True, arguments={"a": 1}),
        None,
        "Exchange.DeclareOk",
    ),
    (
        commands.Exchange.Declare(exchange="e", passive=True, auto_delete=True, internal=True),
        v.DeclareExchange(1, "e", "direct", passive=True, auto_delete=True, internal=True),
        None,
        "Exchange.DeclareOk",
    ),
    (commands.Exchange.Delete(exchange="e", if_unused=True), v.DeleteExchange(1, "e", True), None, "Exchange.DeleteOk"),
    (
        commands.Exchange.Bind(destination="d", source="s", routing_key="k", arguments={"a": 1}),
        v.Bind(1, "s", "d", True, "k", {"a": 1}),
        None,
        "Exchange.BindOk",
    ),
    (
        commands.Exchange.Unbind(destination="d", source="s", routing_key="k"),
        v.Unbind(1, "s", "d", True, "k"),
        None,
        "Exchange.UnbindOk",
    ),
    (
        commands.Queue.Declare(queue="q", durable=True, exclusive=True, auto_delete=True, arguments={"x": "y"}),
        v.DeclareQueue(1, "q", False, True, True, True, {"x": "y"}),
        answers.QueueDeclared("q", 3, 2),
        "Queue.DeclareOk",
    ),
    (
        commands.Queue.Declare(queue="q", passive=True),
        v.DeclareQueue(1, "q", True),
        answers.QueueDeclared("q", 0, 0),
        "Queue.DeclareOk",
    ),
    (
        commands.Queue.Bind(queue="", exchange="e", routing_key="k"),
        v.Bind(1, "e", "", False, "k"),
        None,
        "Queue.BindOk",
    ),
    (
        commands.Queue.Unbind(queue="q", exchange="e", routing_key="k"),
        v.Unbind(1, "e", "q", False, "k"),
        None,
        "Queue.UnbindOk",
    ),
    (commands.Queue.Purge(queue="q"), v.PurgeQueue(1, "q"), 7, "Queue.PurgeOk"),
    (
        commands.Queue.Delete(queue="q", if_unused=True, if_empty=True),
        v.DeleteQueue(1, "q", True, True),
        7,
        "Queue.DeleteOk",
    ),
    (commands.Basic.Qos(prefetch_count=10), v.Limit(1, 10, False), None, "Basic.QosOk"),
    (commands.Basic.Qos(prefetch_count=10, global_=True), v.Limit(1, 10, True), None, "Basic.QosOk"),
    (
        commands.Basic.Consume(
            queue="", consumer_tag="t", no_local=True, no_ack=True, exclusive=True, arguments={"x": 1}
        ),
        v.Consume(1, "", "t", True, True, True, {"x": 1}),
        "t",
        "Basic.ConsumeOk",
    ),
    (commands.Basic.Cancel(consumer_tag="t"), v.Cancel(1, "t"), None, "Basic.CancelOk"),
    (commands.Basic.Recover(requeue=True), v.Recover(1), None, "Basic.RecoverOk"),
    (commands.Confirm.Select(), v.SelectConfirms(1), None, "Confirm.SelectOk"),
    (commands.Tx.Select(), v.SelectTransactions(1), None, "Tx.SelectOk"),
    (commands.Tx.Commit(), v.Commit(1), None, "Tx.CommitOk"),
    (commands.Tx.Rollback(), v.Rollback(1), None, "Tx.RollbackOk"),
    (commands.Channel.Close(200, "", 0, 0), v.CloseSession(1), None, "Channel.CloseOk"),
]


@pytest.mark.parametrize(("method", "request_", "result", "answer"), _ASKED, ids=[row[0].name for row in _ASKED])
def test_each_method_asks_and_is_answered(method: Any, request_: v.Request, result: Any, answer: str) -> None:
    """One request, and its -ok when the broker has done it."""
    book = Playbook().running()
    asked = book.asks(1, method)
    assert asked == request_
    assert book.raw() == b""
    book.engine.succeed(asked, result)
    [(channel, value)] = book.sent()
    assert (channel, value.name) == (1, answer)


def test_answers_carry_results() -> None:
    """Names, counts and tags as the broker said."""
    book = Playbook().running()
    declared = book.does(1, commands.Queue.Declare(queue=""), answers.QueueDeclared("amq.gen-1", 3, 2))
    assert (declared.queue, declared.message_count, declared.consumer_count) == ("amq.gen-1", 3, 2)
    assert book.does(1, commands.Queue.Purge(queue="q"), 7).message_count == 7
    assert book.does(1, commands.Queue.Delete(queue="q"), 8).message_count == 8
    assert book.does(1, commands.Basic.Consume(queue="q"), "made").consumer_tag == "made"
    assert book.does(1, commands.Basic.Cancel(consumer_tag="t")).consumer_tag == "t"
    assert book.does(1, commands.Channel.Flow(True)).active is True


@pytest.mark.parametrize(
    "method",
    [
        commands.Exchange.Declare(exchange="e", nowait=True),
        commands.Exchange.Delete(exchange="e", nowait=True),
        commands.Exchange.Bind(destination="d", source="s", nowait=True),
        commands.Queue.Declare(queue="q", nowait=True),
        commands.Queue.Bind(queue="q", exchange="e", nowait=True),
        commands.Queue.Purge(queue="q", nowait=True),
        commands.Queue.Delete(queue="q", nowait=True),
        commands.Basic.Consume(queue="q", nowait=True),
        commands.Basic.Cancel(consumer_tag="t", nowait=True),
        commands.Confirm.Select(nowait=True),
    ],
    ids=lambda method: method.name,
)
def test_no_wait_is_not_answered(method: Any) -> None:
    """The client has gone on."""
    book = Playbook().running()
    book.engine.succeed(book.asks(1, method), answers.QueueDeclared("q", 0, 0))
    assert book.raw() == b""


@pytest.mark.filterwarnings("ignore:This command is deprecated")
def test_recover_async_is_not_answered() -> None:
    """It releases, without recover-ok."""
    book = Playbook().running()
    asked = book.asks(1, commands.Basic.RecoverAsync(requeue=True))
    assert asked == v.Recover(1)
    book.engine.succeed(asked)
    assert book.raw() == b""


def test_get() -> None:
    """get-ok with its content, or get-empty."""
    book = Playbook().running()
    asked = book.asks(1, commands.Basic.Get(queue="q", no_ack=True))
    assert asked == v.Get(1, "q", True)
    book.engine.succeed(asked, answers.Got(4, True, facts("e", "k"), b"\x10\0\x02", b"body", 9))
    [(_, ok), (_, head), (_, body)] = book.sent()
    assert (ok.delivery_tag, ok.redelivered, ok.exchange, ok.routing_key, ok.message_count) == (4, True, "e", "k", 9)
    assert isinstance(head, header.ContentHeader)
    assert body.value == b"body"
    assert isinstance(book.does(1, commands.Basic.Get(queue="q")), commands.Basic.GetEmpty)


@pytest.mark.parametrize("method", [commands.Channel.FlowOk(True), commands.Basic.CancelOk("t")])
def test_answers_of_the_client_are_noted(method: Any) -> None:
    """flow-ok and cancel-ok ask for nothing."""
    book = Playbook().running()
    assert book.client(1, method) == []
    assert book.raw() == b""


@pytest.mark.parametrize(
    ("error", "code"),
    [(NotFound("no queue 'q'"), 404), (AccessRefused("no"), 403), (PreconditionFailed("no"), 406)],
)
def test_soft_errors_close_the_channel(error: Any, code: int) -> None:
    """With the failing method's ids; the session ends at once, and the rest is ignored until close-ok."""
    book = Playbook().running()
    book.engine.fail(book.asks(1, commands.Queue.Declare(queue="q", passive=True)), error)
    assert book.engine.pending_requests() == [v.CloseSession(1)]
    assert book.closed_channel() == (code, 50, 10)
    assert book.engine.receive(content(1, b"x") + content(1, b"y" * 9000)) == []
    assert book.client(1, commands.Queue.Declare(queue="q"), commands.Basic.Ack(1), commands.Channel.Open()) == []
    assert book.raw() == b""
    assert book.client(1, commands.Channel.CloseOk()) == []
    assert isinstance(book.does(1, commands.Channel.Open()), commands.Channel.OpenOk)


@pytest.mark.parametrize(("error", "code"), [(Unavailable("no store"), 541), (ResourceError("too much"), 506)])
def test_hard_errors_close_the_connection(error: Any, code: int) -> None:
    """Those that the specification calls hard, and those that say so themselves."""
    book = Playbook().running(1, 2)
    book.engine.fail(book.asks(1, commands.Queue.Declare(queue="q")), error)
    assert book.engine.pending_requests() == [v.EndSessions(0)]
    assert book.closed_connection() == (code, 50, 10)


def test_reply_texts_name_the_code() -> None:
    """As RabbitMQ words them, and never longer than a short string."""
    book = Playbook().running()
    book.engine.fail(book.asks(1, commands.Queue.Purge(queue="q")), NotFound("no queue " + "ü" * 300))
    [(_, close)] = book.sent()
    assert close.reply_text.startswith("NOT_FOUND - no queue")
    assert len(close.reply_text.encode()) <= 255


def test_publishes_and_settlements_can_fail() -> None:
    """They have no answer, but they have an end: the channel's."""
    book = Playbook().running(1, 2)
    [publish] = book.engine.receive(content(1, b"x", exchange="no-such"))
    book.engine.fail(publish, NotFound("no exchange 'no-such'"))
    assert book.closed_channel(1) == (404, 60, 40)
    assert book.engine.pending_requests() == [v.CloseSession(1)]
    [settle] = book.client(2, commands.Basic.Ack(99))
    book.engine.fail(settle, PreconditionFailed("unknown delivery tag 99"))
    assert book.closed_channel(2) == (406, 60, 80)


def test_late_answers_are_dropped() -> None:
    """Of requests whose channel failed meanwhile, even when its number is in use again."""
    book = Playbook().running()
    late = book.asks(1, commands.Queue.Declare(queue="a"))
    [publish] = book.engine.receive(content(1, b"x"))
    book.engine.fail(book.asks(1, commands.Queue.Declare(queue="b")), NotFound("no"))
    [ended] = book.engine.pending_requests()
    book.raw()
    book.engine.succeed(late, answers.QueueDeclared("a", 0, 0))
    book.engine.succeed(ended)
    book.client(1, commands.Channel.CloseOk())
    opening = book.asks(1, commands.Channel.Open())
    book.engine.fail(publish, NotFound("late"))
    book.engine.fail(late, NotFound("late"))
    assert book.raw() == b""
    book.engine.succeed(opening)
    assert isinstance(book.sent()[0][1], commands.Channel.OpenOk)


def test_both_close_a_channel() -> None:
    """The client's close crosses ours: it is answered, and its close-ok still waited for."""
    book = Playbook().running()
    book.engine.fail(book.asks(1, commands.Queue.Purge(queue="q")), NotFound("no"))
    book.engine.pending_requests()
    book.raw()
    assert book.client(1, commands.Channel.Close(200, "", 0, 0)) == []
    assert isinstance(book.sent()[0][1], commands.Channel.CloseOk)
    book.client(1, commands.Channel.CloseOk())
    assert isinstance(book.does(1, commands.Channel.Open()), commands.Channel.OpenOk)
