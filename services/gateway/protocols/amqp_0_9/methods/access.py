"""Class access of AMQP 0-8 and 0-9: 0-9-1 has dropped it, and its tickets are reserved fields there."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Short, ShortString


@method(30, 10)
class Request(Method):
    realm: ShortString
    exclusive: Bit
    passive: Bit
    active: Bit
    write: Bit
    read: Bit


@method(30, 11)
class RequestOk(Method):
    ticket: Short
