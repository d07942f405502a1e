"""WebSocket as a kind of transport: recognised by its HTTP request (RFC 6455, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import structlog

if TYPE_CHECKING:
    import asyncio

    from services.common.config import Settings
    from services.gateway.transport.arrival import Arrival

log = structlog.get_logger()

_GET = b"GET "


class Web:
    """WebSocket for pages of the origins in the settings; off where there are none."""

    secure = False
    needs = "HOPLINE_WEBSOCKET_ORIGINS"
    usable = True
    amiss = ""

    def __init__(self, settings: Settings) -> None:
        self.origins = settings.websocket_origins

    @property
    def on(self) -> bool:
        """As Transport says."""
        return bool(self.origins)

    def begins(self, data: bytes) -> bool | None:
        """As Transport says."""
        return data[: len(_GET)] == _GET or (None if _GET.startswith(data) else False)

    def take(self, arrival: Arrival) -> None:
        """As Transport says."""
        # Imported with the first client that uses it: few do.
        from services.gateway.transport.websocket import WebSocket  # noqa: PLC0415

        def refused(reason: str) -> None:
            arrival.say(log.info, "a WebSocket is refused", reason=reason)
            arrival.connection.closing = True

        carrier, data = arrival.transport, arrival.data
        websocket = WebSocket(carrier, cast("asyncio.Protocol", arrival.connection), self.origins, refused)
        arrival.leave_to(websocket)
        carrier.set_protocol(cast("asyncio.Protocol", websocket))
        websocket.data_received(data)
