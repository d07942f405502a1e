"""Class basic: consume ends before its arguments, or has them, as Qpid's clients send it."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Short, ShortString, TableIfThere


@method(60, 20)
class Consume(Method):
    reserved_1: Short
    queue: ShortString
    consumer_tag: ShortString
    no_local: Bit
    no_ack: Bit
    exclusive: Bit
    no_wait: Bit
    arguments: TableIfThere
