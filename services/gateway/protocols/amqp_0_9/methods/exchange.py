"""Class exchange; bind and unbind are RabbitMQ's (exchange-to-exchange bindings), bound is Qpid's."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Short, ShortString, Table


@method(40, 10)
class Declare(Method):
    reserved_1: Short
    exchange: ShortString
    type: ShortString
    passive: Bit
    durable: Bit
    auto_delete: Bit
    internal: Bit
    no_wait: Bit
    arguments: Table


@method(40, 11)
class DeclareOk(Method):
    pass


@method(40, 20)
class Delete(Method):
    reserved_1: Short
    exchange: ShortString
    if_unused: Bit
    no_wait: Bit


@method(40, 21)
class DeleteOk(Method):
    pass


@method(40, 22)
class Bound(Method):
    exchange: ShortString
    routing_key: ShortString
    queue: ShortString


@method(40, 23)
class BoundOk(Method):
    reply_code: Short
    reply_text: ShortString


@method(40, 30)
class Bind(Method):
    reserved_1: Short
    destination: ShortString
    source: ShortString
    routing_key: ShortString
    no_wait: Bit
    arguments: Table


@method(40, 31)
class BindOk(Method):
    pass


@method(40, 40)
class Unbind(Method):
    reserved_1: Short
    destination: ShortString
    source: ShortString
    routing_key: ShortString
    no_wait: Bit
    arguments: Table


@method(40, 51)
class UnbindOk(Method):
    pass
