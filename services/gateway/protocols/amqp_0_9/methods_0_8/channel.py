"""Class channel: open-ok says nothing; alert is a server's."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Short, ShortString, Table


@method(20, 11)
class OpenOk(Method):
    pass


@method(20, 30)
class Alert(Method):
    reply_code: Short
    reply_text: ShortString
    details: Table
