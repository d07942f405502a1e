"""Names of spans, attributes and events: only this file knows the semantic conventions, and their version.

OpenTelemetry's messaging conventions (Development) describe clients of brokers, not brokers; spans of a broker take
the shape that Solace gave them (receive, send, move), with the conventions' attributes wherever there is one. Names of
Hopline's own begin with `hopline.`. Bodies and raw headers are never attributes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

VERSION: Final = "1.44.0"
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"
SCOPE: Final = "hopline"
SYSTEM: Final = "hopline"


class Kind(IntEnum):
    """SpanKind, with the numbers of OTLP."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


# ------------------------------------------------------------------ the conventions'

MESSAGING_SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
ANONYMOUS: Final = "messaging.destination.anonymous"
PARTITION: Final = "messaging.destination.partition.id"
ROUTING_KEY: Final = "messaging.rabbitmq.destination.routing_key"
DELIVERY_TAG: Final = "messaging.rabbitmq.message.delivery_tag"
MESSAGE_ID: Final = "messaging.message.id"
CONVERSATION_ID: Final = "messaging.message.conversation_id"
BODY_SIZE: Final = "messaging.message.body.size"
BATCH_COUNT: Final = "messaging.batch.message_count"
CLIENT_ID: Final = "messaging.client.id"
PEER_ADDRESS: Final = "network.peer.address"
PEER_PORT: Final = "network.peer.port"
PROTOCOL_NAME: Final = "network.protocol.name"
ERROR_TYPE: Final = "error.type"
RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE: Final = "service.instance.id"
SERVICE_VERSION: Final = "service.version"

# ------------------------------------------------------------------ Hopline's own

UID: Final = "hopline.message.uid"
VIRTUAL_HOST: Final = "hopline.virtual_host"
EPOCH: Final = "hopline.partition.epoch"
QUEUE: Final = "hopline.queue"
OUTCOME: Final = "hopline.outcome"
REASON: Final = "hopline.reason"
TARGET: Final = "hopline.target"
DURABLE: Final = "hopline.durable"
DEPTH: Final = "hopline.queue.depth"
DWELL_MS: Final = "hopline.queue.dwell_ms"
ATTEMPT: Final = "hopline.delivery.attempt"
CONSUMER: Final = "hopline.consumer.tag"
CONNECTION: Final = "hopline.connection"
USER: Final = "hopline.user"
QUEUES: Final = "hopline.route.queues"
ROUTE_CACHED: Final = "hopline.route.cached"
WRITE_MS: Final = "hopline.store.write_ms"
PROVIDER: Final = "hopline.store.provider"
RULE: Final = "hopline.sampling"
SPANS_DROPPED: Final = "hopline.telemetry.dropped_spans"

# ------------------------------------------------------------------ operations and their spans

RECEIVE: Final = "receive"
ENQUEUE: Final = "enqueue"
COMMIT: Final = "commit"
SEND: Final = "send"
MOVE: Final = "move"
SETTLE: Final = "settle"
WRITTEN: Final = "written"
ROUTE: Final = "hopline.router.Router/Route"

DEFAULT_EXCHANGE: Final = "amq.default"

# Outcomes of a delivery; of an enqueue: ACCEPTED or the reason of the refusal.
ACCEPTED: Final = "accepted"
REJECTED: Final = "rejected"
RELEASED: Final = "released"
NOT_SENT: Final = "not_sent"
CONNECTION_LOST: Final = "connection_lost"
SESSION_CLOSED: Final = "session_closed"
OWNER_CHANGED: Final = "owner_changed"
GATEWAY_LOST: Final = "gateway_lost"
UNROUTABLE: Final = "unroutable"
ROLLED_BACK: Final = "rolled_back"
IN_DOUBT: Final = "in_doubt"

# Why a message was moved, by the reason that x-death gives.
MOVE_REASONS: Final = {"expired": "ttl_expired"}


def span_name(operation: str, destination: str) -> str:
    """`{operation} {destination}`; the default exchange gets a name here."""
    return f"{operation} {destination or DEFAULT_EXCHANGE}"


def operation(name: str, destination: str, *, kind: str = "") -> dict[str, str | int | float | bool]:
    """The attributes that every messaging span begins with; `kind` is `messaging.operation.type` where there is one."""
    attributes: dict[str, str | int | float | bool] = {
        MESSAGING_SYSTEM: SYSTEM,
        OPERATION_NAME: name,
        DESTINATION: destination or DEFAULT_EXCHANGE,
    }
    if kind:
        attributes[OPERATION_TYPE] = kind
    return attributes
