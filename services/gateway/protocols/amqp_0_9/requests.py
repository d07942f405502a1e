"""What a client's method asks of the broker, in the vocabulary's words."""

from __future__ import annotations

from functools import singledispatch

from services.common.errors import CommandInvalid, NotImplementedHere
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import access, basic, channel, confirm, exchange, queue, tx
from services.gateway.protocols.amqp_0_9.methods_0_9 import channel as channel_0_9


@singledispatch
def request_of(method: Method, session: int) -> to_broker.Request:
    """The request that `method` makes; raises CommandInvalid for those that only a server sends."""
    raise CommandInvalid(f"{method.name} is not for clients to send on channel {session}")


@request_of.register
def _(method: channel.Flow, session: int) -> to_broker.Request:
    return to_broker.Flow(session, method.active)


@request_of.register(access.Request)
@request_of.register(channel_0_9.Ping)
def _(_method: access.Request | channel_0_9.Ping, session: int) -> to_broker.Request:
    return to_broker.Echo(session)


@request_of.register
def _(method: channel_0_9.Resume, session: int) -> to_broker.Request:
    raise NotImplementedHere(f"{method.name}: a channel ends with its connection (channel {session})")


@request_of.register
def _(method: exchange.Declare, session: int) -> to_broker.Request:
    return to_broker.DeclareExchange(
        session,
        method.exchange,
        method.type,
        method.passive,
        method.durable,
        method.auto_delete,
        method.internal,
        method.arguments,
    )


@request_of.register
def _(method: exchange.Delete, session: int) -> to_broker.Request:
    return to_broker.DeleteExchange(session, method.exchange, method.if_unused)


@request_of.register
def _(method: exchange.Bind, session: int) -> to_broker.Request:
    return to_broker.Bind(session, method.source, method.destination, True, method.routing_key, method.arguments)


@request_of.register
def _(method: exchange.Unbind, session: int) -> to_broker.Request:
    return to_broker.Unbind(session, method.source, method.destination, True, method.routing_key, method.arguments)


@request_of.register
def _(method: exchange.Bound, session: int) -> to_broker.Request:
    # An empty key or queue is none, as Qpid reads them.
    return to_broker.FindBinding(session, method.exchange, method.routing_key or None, method.queue or None)


@request_of.register
def _(method: queue.Declare, session: int) -> to_broker.Request:
    return to_broker.DeclareQueue(
        session,
        method.queue,
        method.passive,
        method.durable,
        method.exclusive,
        method.auto_delete,
        method.arguments,
    )


@request_of.register
def _(method: queue.Bind, session: int) -> to_broker.Request:
    return to_broker.Bind(session, method.exchange, method.queue, False, method.routing_key, method.arguments)


@request_of.register
def _(method: queue.Unbind, session: int) -> to_broker.Request:
    return to_broker.Unbind(session, method.exchange, method.queue, False, method.routing_key, method.arguments)


@request_of.register
def _(method: queue.Purge, session: int) -> to_broker.Request:
    return to_broker.PurgeQueue(session, method.queue)


@request_of.register
def _(method: queue.Delete, session: int) -> to_broker.Request:
    return to_broker.DeleteQueue(session, method.queue, method.if_unused, method.if_empty)


@request_of.register
def _(method: basic.Qos, session: int) -> to_broker.Request:
    if method.prefetch_size:
        raise NotImplementedHere(f"prefetch_size!=0 ({method.prefetch_size})")
    return to_broker.Limit(session, method.prefetch_count, method.global_)


@request_of.register
def _(method: basic.Consume, session: int) -> to_broker.Request:
    return to_broker.Consume(
        session,
        method.queue,
        method.consumer_tag,
        method.exclusive,
        method.no_ack,
        method.no_local,
        method.arguments,
    )


@request_of.register
def _(method: basic.Cancel, session: int) -> to_broker.Request:
    return to_broker.Cancel(session, method.consumer_tag)


@request_of.register
def _(method: basic.Get, session: int) -> to_broker.Request:
    return to_broker.Get(session, method.queue, method.no_ack)


@request_of.register(basic.Recover)
@request_of.register(basic.RecoverAsync)
def _(method: basic.Recover | basic.RecoverAsync, session: int) -> to_broker.Request:
    if not method.requeue:
        raise NotImplementedHere("recover without requeue: deliveries go to whichever consumer is next")
    return to_broker.Recover(session)


@request_of.register
def _(_method: confirm.Select, session: int) -> to_broker.Request:
    return to_broker.SelectConfirms(session)


@request_of.register
def _(_method: tx.Select, session: int) -> to_broker.Request:
    return to_broker.SelectTransactions(session)


@request_of.register
def _(_method: tx.Commit, session: int) -> to_broker.Request:
    return to_broker.Commit(session)


@request_of.register
def _(_method: tx.Rollback, session: int) -> to_broker.Request:
    return to_broker.Rollback(session)
