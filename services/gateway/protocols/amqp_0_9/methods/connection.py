"""Class connection (1.5 of the specification; RabbitMQ adds blocked, unblocked and update-secret)."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Long, LongString, Octet, Short, ShortString, Table


@method(10, 10)
class Start(Method):
    version_major: Octet
    version_minor: Octet
    server_properties: Table
    mechanisms: LongString
    locales: LongString


@method(10, 11)
class StartOk(Method):
    client_properties: Table
    mechanism: ShortString
    response: LongString
    locale: ShortString


@method(10, 20)
class Secure(Method):
    challenge: LongString


@method(10, 21)
class SecureOk(Method):
    response: LongString


@method(10, 30)
class Tune(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 31)
class TuneOk(Method):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


@method(10, 40)
class Open(Method):
    virtual_host: ShortString
    reserved_1: ShortString
    reserved_2: Bit


@method(10, 41)
class OpenOk(Method):
    reserved_1: ShortString = ""


@method(10, 50)
class Close(Method):
    reply_code: Short
    reply_text: ShortString
    class_id: Short
    method_id: Short


@method(10, 51)
class CloseOk(Method):
    pass


@method(10, 60)
class Blocked(Method):
    reason: ShortString


@method(10, 61)
class Unblocked(Method):
    pass


@method(10, 70)
class UpdateSecret(Method):
    new_secret: LongString
    reason: ShortString


@method(10, 71)
class UpdateSecretOk(Method):
    pass
