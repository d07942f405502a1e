"""Class connection: redirect stands where 0-9 has close."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Short, ShortString


@method(10, 50)
class Redirect(Method):
    host: ShortString
    known_hosts: ShortString


@method(10, 60)
class Close(Method):
    reply_code: Short
    reply_text: ShortString
    class_id: Short
    method_id: Short


@method(10, 61)
class CloseOk(Method):
    pass
