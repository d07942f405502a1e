"""Whose a line of the log is: loggers take lines by user, connection, container and virtual host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection


def whose(connection: Connection) -> dict[str, str]:
    """Of a client: as much as it has said by now."""
    told = {"connection": connection.name, "peer": connection.peer}
    if not connection.virtual_host:
        return told
    container = {} if connection.client in {"", connection.user} else {"container": connection.client}
    return {**told, "user": connection.user, "virtual_host": connection.virtual_host, **container}
