"""Connections that come and go, for the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.bus.facts import ConnectionClosed, ConnectionOpened

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection


def opened(connection: Connection) -> ConnectionOpened:
    """Its client has a virtual host now."""
    return ConnectionOpened(
        connection=connection.name, peer=connection.peer, user=connection.user, virtual_host=connection.virtual_host
    )


def closed(connection: Connection) -> ConnectionClosed:
    """Its socket is gone."""
    return ConnectionClosed(
        connection=connection.name, peer=connection.peer, user=connection.user, virtual_host=connection.virtual_host
    )
