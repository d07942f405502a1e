"""Class connection: redirect is a server's."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import ShortString


@method(10, 42)
class Redirect(Method):
    host: ShortString
    known_hosts: ShortString
