"""Connections that come and go, for the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.bus.facts import ConnectionClosed, ConnectionOpened

if TYPE_CHECKING:
    from services.gateway.observe.client import Client


def opened(client: Client) -> ConnectionOpened:
    """Its client has a virtual host now."""
    return ConnectionOpened(
        connection=client.name, peer=client.peer, user=client.user, virtual_host=client.virtual_host
    )


def closed(client: Client) -> ConnectionClosed:
    """Its socket is gone."""
    return ConnectionClosed(
        connection=client.name, peer=client.peer, user=client.user, virtual_host=client.virtual_host
    )
