"""Who is at the other end of a connection, as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.telemetry import conventions as c
from services.common.telemetry.span import Attributes

if TYPE_CHECKING:
    from services.gateway.observe.client import Client


def peer_attributes(client: Client) -> Attributes:
    """Names, address and virtual host."""
    attributes: Attributes = {
        c.VIRTUAL_HOST: client.virtual_host,
        c.CONNECTION: client.name,
        c.USER: client.user,
        c.PROTOCOL_NAME: "amqp",
    }
    if client.client:
        attributes[c.CLIENT_ID] = client.client
    host, _, port = client.peer.rpartition(":")
    if host and port.isdigit():
        attributes[c.PEER_ADDRESS] = host
        attributes[c.PEER_PORT] = int(port)
    return attributes
