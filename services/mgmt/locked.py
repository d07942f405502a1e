"""Queues that a connection has for itself: management, which is no connection, leaves their messages alone."""

from __future__ import annotations

from services.common.errors import ResourceLocked


def check_shared(virtual_host: str, name: str, owner: str) -> None:
    """Raises ResourceLocked, as RabbitMQ says it, where `owner` is a connection."""
    if owner:
        raise ResourceLocked(f"cannot obtain exclusive access to locked queue '{name}' in vhost '{virtual_host}'")
