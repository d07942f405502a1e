"""Credentials that expire, such as tokens: then their connection ends, unless the client has shown newer ones."""

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
    """The expiry of one connection's credentials."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # weak: the connection refers to this, and a cycle would outlive it
        self._timer: asyncio.TimerHandle | None = None
        self._expires = 0.0

    def set(self, principal: Principal) -> None:
        """The principal that has signed in, now or once more."""
        self.cancel()
        if principal.expires is not None:
            self._expires = principal.expires
            self._wait()

    def cancel(self) -> None:
        """The connection is gone."""
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
