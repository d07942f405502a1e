"""Names of attributes as they are today, whatever version of the conventions an application follows."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

# OpenTelemetry's messaging conventions renamed these from 1.17 to 1.44; the network's, from 1.21 on.
RENAMED = {
    "messaging.client_id": "messaging.client.id",
    "messaging.consumer_id": "messaging.client.id",
    "messaging.consumer.id": "messaging.client.id",
    "messaging.consumer_group": "messaging.consumer.group.name",
    "messaging.conversation_id": "messaging.message.conversation_id",
    "messaging.destination": "messaging.destination.name",
    "messaging.destination_publish.name": "messaging.destination.name",
    "messaging.eventhubs.consumer.group": "messaging.consumer.group.name",
    "messaging.kafka.consumer.group": "messaging.consumer.group.name",
    "messaging.kafka.destination.partition": "messaging.destination.partition.id",
    "messaging.kafka.message.offset": "messaging.kafka.offset",
    "messaging.kafka.partition": "messaging.destination.partition.id",
    "messaging.message.payload_size_bytes": "messaging.message.body.size",
    "messaging.message_id": "messaging.message.id",
    "messaging.message_payload_size_bytes": "messaging.message.body.size",
    "messaging.operation": "messaging.operation.type",
    "messaging.rabbitmq.delivery_tag": "messaging.rabbitmq.message.delivery_tag",
    "messaging.rabbitmq.routing_key": "messaging.rabbitmq.destination.routing_key",
    "messaging.rocketmq.client_group": "messaging.consumer.group.name",
    "messaging.source.name": "messaging.destination.name",
    "messaging.temp_destination": "messaging.destination.temporary",
    "net.host.name": "server.address",
    "net.host.port": "server.port",
    "net.peer.name": "server.address",
    "net.peer.port": "server.port",
    "net.sock.peer.addr": "network.peer.address",
    "net.sock.peer.port": "network.peer.port",
}

# What clients and brokers call operations, and the type that it is.
OPERATIONS = {
    "create": "create",
    "publish": "send",
    "send": "send",
    "poll": "receive",
    "receive": "receive",
    "get": "receive",
    "consume": "process",
    "deliver": "process",
    "process": "process",
    "ack": "settle",
    "nack": "settle",
    "reject": "settle",
    "settle": "settle",
}


def renamed(attributes: Column) -> Column:
    """Attributes by their names of today; where both an old and a new one are there, either counts."""
    names = F.create_map(*(F.lit(name) for pair in RENAMED.items() for name in pair))
    return F.transform_keys(attributes, lambda name, _: F.coalesce(F.element_at(names, name), name))


def operation(attributes: Column, name: Column) -> Column:
    """The type of a messaging operation; "" for a span that is of none.

    Kinds do not tell: pika's instrumentation says SERVER of a publish. What is not said in attributes is taken from
    the span's name, of which it is the first word now and was the last once.
    """
    said = F.coalesce(
        F.element_at(attributes, "messaging.operation.type"), F.element_at(attributes, "messaging.operation.name")
    )
    is_messaging = F.element_at(attributes, "messaging.system").isNotNull() | said.isNotNull()
    known = F.create_map(*(F.lit(word) for pair in OPERATIONS.items() for word in pair))
    words = (said, F.substring_index(name, " ", 1), F.substring_index(name, " ", -1))
    found = F.coalesce(*(F.element_at(known, F.lower(word)) for word in words), F.lit(""))
    return F.when(is_messaging, found).otherwise("")


# Names that are different in each run: consumer tags and queues that client or broker named, and UUIDs.
_PASSING = {
    r"(amq\.)?ctag-\S+": "ctag-*",
    r"\bctag\d+\.[0-9a-f]+": "ctag-*",
    r"\bamq\.gen-\S+": "amq.gen-*",
    r"\b[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\b": "*",
}


def lasting(name: Column) -> Column:
    """A name without the parts that are different in each run."""
    return reduce(lambda so_far, one: F.regexp_replace(so_far, *one), _PASSING.items(), name)


def destination(attributes: Column) -> Column:
    """Where a messaging operation goes to or comes from, in few names: a template where there is one."""
    names = ("messaging.destination.template", "messaging.destination.name")
    return F.coalesce(*(F.element_at(attributes, name) for name in names), F.lit(""))
