"""Class confirm: RabbitMQ's publisher confirms."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit


@method(85, 10)
class Select(Method):
    no_wait: Bit


@method(85, 11)
class SelectOk(Method):
    pass
