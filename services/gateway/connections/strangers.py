"""The budget for incomplete data of peers that have not opened a virtual host.

It is separate, so that a peer that can merely reach the port takes no memory from clients that have signed in.

Real handshakes leave nothing incomplete for longer than milliseconds. So when there is too much, the peers that began
first are closed until there is not; none is made to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()

STRANGERS = "see who connects and does not sign in, and keep them from the port"
"""What an operator does about many of them."""


class Strangers:
    """The peers of one gateway that have not opened a virtual host."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes."""
        self.limit = limit
        self.total = 0
        self._sizes: dict[Connection, int] = {}  # the first to begin comes first
        self._told = False

    def note(self, connection: Connection, size: int) -> None:
        """A read has left so much of a connection incomplete."""
        self.total += size - self._sizes.get(connection, 0)
        if size:
            self._sizes[connection] = size
        else:
            self._sizes.pop(connection, None)
        while self.total > self.limit:
            self._close_the_first()

    def forget(self, connection: Connection) -> None:
        """The connection is gone, or has opened a virtual host."""
        self.total -= self._sizes.pop(connection, 0)
        self._told = self._told and self.total > self.limit // 2

    def _close_the_first(self) -> None:
        first = next(iter(self._sizes))
        if not self._told:
            self._told = True  # no second line until there is room again
            log.warning(
                "too much that is unfinished of peers that have not signed in: those that began first are closed",
                bytes=self.total,
                peers=len(self._sizes),
                do=STRANGERS,
            )
        self.total -= self._sizes.pop(first)
        first.cut_off()
