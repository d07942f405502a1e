"""Class basic; nack, and ack, nack and cancel from the server, are RabbitMQ's."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit, Long, LongLong, Short, ShortString, Table


@method(60, 10)
class Qos(Method):
    prefetch_size: Long
    prefetch_count: Short
    global_: Bit


@method(60, 11)
class QosOk(Method):
    pass


@method(60, 20)
class Consume(Method):
    reserved_1: Short
    queue: ShortString
    consumer_tag: ShortString
    no_local: Bit
    no_ack: Bit
    exclusive: Bit
    no_wait: Bit
    arguments: Table


@method(60, 21)
class ConsumeOk(Method):
    consumer_tag: ShortString


@method(60, 30)
class Cancel(Method):
    consumer_tag: ShortString
    no_wait: Bit


@method(60, 31)
class CancelOk(Method):
    consumer_tag: ShortString


@method(60, 40)
class Publish(Method):
    reserved_1: Short
    exchange: ShortString
    routing_key: ShortString
    mandatory: Bit
    immediate: Bit


@method(60, 50)
class Return(Method):
    reply_code: Short
    reply_text: ShortString
    exchange: ShortString
    routing_key: ShortString


@method(60, 60)
class Deliver(Method):
    consumer_tag: ShortString
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortString
    routing_key: ShortString


@method(60, 70)
class Get(Method):
    reserved_1: Short
    queue: ShortString
    no_ack: Bit


@method(60, 71)
class GetOk(Method):
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortString
    routing_key: ShortString
    message_count: Long


@method(60, 72)
class GetEmpty(Method):
    reserved_1: ShortString = ""


@method(60, 80)
class Ack(Method):
    delivery_tag: LongLong
    multiple: Bit


@method(60, 90)
class Reject(Method):
    delivery_tag: LongLong
    requeue: Bit


@method(60, 100)
class RecoverAsync(Method):
    requeue: Bit


@method(60, 110)
class Recover(Method):
    requeue: Bit


@method(60, 111)
class RecoverOk(Method):
    pass


@method(60, 120)
class Nack(Method):
    delivery_tag: LongLong
    multiple: Bit
    requeue: Bit
