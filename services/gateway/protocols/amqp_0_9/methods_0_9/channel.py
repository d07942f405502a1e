"""Class channel: what 0-9 calls work in progress."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import LongString


@method(20, 50)
class Resume(Method):
    channel_id: LongString


@method(20, 60)
class Ping(Method):
    pass


@method(20, 70)
class Pong(Method):
    pass


@method(20, 80)
class Ok(Method):
    pass
