"""Class channel."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, LongString, Short, ShortString


@method(20, 10)
class Open(Method):
    reserved_1: ShortString


@method(20, 11)
class OpenOk(Method):
    reserved_1: LongString = b""


@method(20, 20)
class Flow(Method):
    active: Bit


@method(20, 21)
class FlowOk(Method):
    active: Bit


@method(20, 40)
class Close(Method):
    reply_code: Short
    reply_text: ShortString
    class_id: Short
    method_id: Short


@method(20, 41)
class CloseOk(Method):
    pass
