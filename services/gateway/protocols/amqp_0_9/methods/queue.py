"""Class queue."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Long, Short, ShortString, Table


@method(50, 10)
class Declare(Method):
    reserved_1: Short
    queue: ShortString
    passive: Bit
    durable: Bit
    exclusive: Bit
    auto_delete: Bit
    no_wait: Bit
    arguments: Table


@method(50, 11)
class DeclareOk(Method):
    queue: ShortString
    message_count: Long
    consumer_count: Long


@method(50, 20)
class Bind(Method):
    reserved_1: Short
    queue: ShortString
    exchange: ShortString
    routing_key: ShortString
    no_wait: Bit
    arguments: Table


@method(50, 21)
class BindOk(Method):
    pass


@method(50, 30)
class Purge(Method):
    reserved_1: Short
    queue: ShortString
    no_wait: Bit


@method(50, 31)
class PurgeOk(Method):
    message_count: Long


@method(50, 40)
class Delete(Method):
    reserved_1: Short
    queue: ShortString
    if_unused: Bit
    if_empty: Bit
    no_wait: Bit


@method(50, 41)
class DeleteOk(Method):
    message_count: Long


@method(50, 50)
class Unbind(Method):
    reserved_1: Short
    queue: ShortString
    exchange: ShortString
    routing_key: ShortString
    arguments: Table


@method(50, 51)
class UnbindOk(Method):
    pass
