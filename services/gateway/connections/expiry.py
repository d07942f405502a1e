"""A sign-in that counts until a moment: then its connection ends, unless the client has shown something newer."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

from services.common.clock import epoch_ms

if TYPE_CHECKING:
    import asyncio

    from services.common.authentication.principal import Principal
    from services.gateway.connections.connection import Connection

_LONGEST = 86_400.0  # seconds that a timer waits; then it looks again


class Expiry:
    """Of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # which has this one: a circle would stay when it is gone
        self._timer: asyncio.TimerHandle | None = None
        self._expires = 0.0

    def set(self, principal: Principal) -> None:
        """Who has signed in, now or once more."""
        self.cancel()
        if principal.expires is not None:
            self._expires = principal.expires
            self._wait()

    def cancel(self) -> None:
        """Its connection is gone."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        left = min(max(self._expires - epoch_ms() / 1000, 0.0), _LONGEST)
        self._timer = self._connection.loop.call_later(left, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._expires * 1000 > epoch_ms():
            self._wait()
        elif not self._connection.lost:
            self._connection.shut_down(f"what user '{self._connection.user}' signed in with has expired")
