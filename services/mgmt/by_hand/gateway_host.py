"""Where a gateway speaks AMQP."""

from __future__ import annotations

from typing import Final

from services.common.config import Settings

_LOOPBACK: Final = "127.0.0.1"
_ALL: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - nothing listens there because of it


def reachable(settings: Settings) -> str:
    """The host: where the gateway's gRPC is, or this machine."""
    address = settings.address_of("gateway")
    if not address.startswith("unix:"):
        return address.rpartition(":")[0].strip("[]")
    return _LOOPBACK if settings.amqp_host in _ALL else settings.amqp_host
