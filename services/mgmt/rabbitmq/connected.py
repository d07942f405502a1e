"""Connections and channels in RabbitMQ's words: rows of what gateways tell."""

from __future__ import annotations

from services.mgmt.rabbitmq.objects import Row
from services.mgmt.tree.gateways import gateway_of
from services.rpc.gateway_pb2 import Connection, Session


def connection(told: Connection) -> Row:
    """One."""
    host, port = _peer(told)
    return {
        "name": told.name,
        "user": told.user,
        "vhost": told.virtual_host,
        "user_provided_name": told.client,
        "client_properties": {"connection_name": told.client},
        "peer_host": host,
        "peer_port": port,
        "channels": len(told.sessions),
        "node": gateway_of(told.name),
        "type": "network",
        "protocol": told.protocol,
        "state": "running",
    }


def connections(told: list[Connection]) -> list[Row]:
    """All of them."""
    return [connection(each) for each in told]


def channels(told: list[Connection]) -> list[Row]:
    """All of theirs: AMQP 1.0 calls them sessions."""
    return [_channel(each, session) for each in told for session in each.sessions]


def _channel(told: Connection, session: Session) -> Row:
    host, port = _peer(told)
    return {
        "name": f"{told.name} ({session.number})",
        "number": session.number,
        "user": told.user,
        "vhost": told.virtual_host,
        "node": gateway_of(told.name),
        "state": "running",
        "consumer_count": session.consumers,
        "messages_unacknowledged": session.unsettled,
        "prefetch_count": session.limit,
        "global_prefetch_count": session.shared_limit,
        "confirm": session.confirms,
        "transactional": session.transaction,
        "connection_details": {"name": told.name, "peer_host": host, "peer_port": port},
    }


def _peer(told: Connection) -> tuple[str, int | None]:
    host, _, port = told.peer.rpartition(":")
    return host.strip("[]"), int(port) if port.isdigit() else None
