"""Whether a client is still there: it may be gone when it is its request's turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from services.gateway.protocols.engine import Engine
    from services.gateway.sessions.client import Client


def is_over(client: Client) -> bool:
    """Whether its connection is gone, or the broker ends it: its user is deleted, perhaps, or may less than before."""
    return client.lost or cast("Engine", client.engine).closing


def waits(client: Client) -> bool:
    """Whether it hears of an answer. Who has acknowledged that the broker ends the connection says goodbye as well."""
    return not (is_over(client) or client.parting)
