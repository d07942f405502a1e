"""The method that tells a client that what it asked for is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from services.gateway.answers import Got, QueueDeclared
from services.gateway.protocols.amqp_0_9.exchange_bound import bound_ok
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import access, basic, channel, confirm, exchange, queue, tx
from services.gateway.protocols.amqp_0_9.methods_0_9 import channel as channel_0_9

_TICKET = 1  # opens everything: what a user may do is asked of each request

_Answer = Callable[[Any, Any], Method]  # of the method that asked, and the broker's result


def _queue_declared(_asked: queue.Declare, result: QueueDeclared) -> Method:
    return queue.DeclareOk(result.name, result.message_count, result.consumer_count)


def _got(_asked: basic.Get, result: Got | None) -> Method:
    if result is None:
        return basic.GetEmpty()
    facts = result.facts
    return basic.GetOk(result.number, result.redelivered, facts.exchange, facts.routing_key, result.message_count)


_ANSWERS: dict[type[Method], _Answer] = {
    channel.Open: lambda _asked, _result: channel.OpenOk(),
    channel.Close: lambda _asked, _result: channel.CloseOk(),
    access.Request: lambda _asked, _result: access.RequestOk(_TICKET),
    channel_0_9.Ping: lambda _asked, _result: channel_0_9.Pong(),
    channel.Flow: lambda asked, _result: channel.FlowOk(asked.active),
    exchange.Declare: lambda _asked, _result: exchange.DeclareOk(),
    exchange.Delete: lambda _asked, _result: exchange.DeleteOk(),
    exchange.Bind: lambda _asked, _result: exchange.BindOk(),
    exchange.Unbind: lambda _asked, _result: exchange.UnbindOk(),
    exchange.Bound: bound_ok,
    queue.Declare: _queue_declared,
    queue.Bind: lambda _asked, _result: queue.BindOk(),
    queue.Unbind: lambda _asked, _result: queue.UnbindOk(),
    queue.Purge: lambda _asked, result: queue.PurgeOk(result),
    queue.Delete: lambda _asked, result: queue.DeleteOk(result),
    basic.Qos: lambda _asked, _result: basic.QosOk(),
    basic.Consume: lambda _asked, result: basic.ConsumeOk(result),
    basic.Cancel: lambda asked, _result: basic.CancelOk(asked.consumer_tag),
    basic.Get: _got,
    basic.Recover: lambda _asked, _result: basic.RecoverOk(),
    confirm.Select: lambda _asked, _result: confirm.SelectOk(),
    tx.Select: lambda _asked, _result: tx.SelectOk(),
    tx.Commit: lambda _asked, _result: tx.CommitOk(),
    tx.Rollback: lambda _asked, _result: tx.RollbackOk(),
}


def answer_to(asked: Method, result: Any) -> Method | None:  # noqa: ANN401 - as the vocabulary says of each request
    """What to send when `asked` is done; None when the client wants no answer (no-wait, recover-async)."""
    if getattr(asked, "no_wait", False):
        return None
    answer = _ANSWERS.get(type(asked))
    return answer(asked, result) if answer else None
