"""Who is on the other side of a connection, as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.telemetry import conventions as c
from services.common.telemetry.span import Attributes

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection


def peer_attributes(connection: Connection) -> Attributes:
    """Names, address and virtual host."""
    attributes: Attributes = {
        c.VIRTUAL_HOST: connection.virtual_host,
        c.CONNECTION: connection.name,
        c.USER: connection.user,
        c.PROTOCOL_NAME: "amqp",
    }
    if connection.client:
        attributes[c.CLIENT_ID] = connection.client
    host, _, port = connection.peer.rpartition(":")
    if host and port.isdigit():
        attributes[c.PEER_ADDRESS] = host
        attributes[c.PEER_PORT] = int(port)
    return attributes
