"""How a connection ends: its requests are carried out and answered, then the client is told, then the socket ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import proxy

import structlog

if TYPE_CHECKING:
    from services.gateway import vocabulary as v
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()

_PATIENCE = 2.0  # seconds: for a peer to answer the close, and for its requests to be carried out


class Farewell:
    """The end of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # weak: the connection refers to this, and a cycle would outlive it
        self._expected: asyncio.TimerHandle | None = None

    def expect(self) -> None:
        """Limits the time that the engine, which has closed the connection, waits for the peer's answer."""
        if not self._expected:
            self._expected = asyncio.get_running_loop().call_later(_PATIENCE, self._connection.abort)

    def say(self, request: v.Close) -> None:
        """The peer closes the connection, or the engine has ended it."""
        connection = self._connection
        if request.reason and not connection.closing:
            connection.tell("connection ended", reason=request.reason)
        connection.closing = True
        if connection.sessions or connection.owns_queues:
            connection.parting = True  # before the flush that ends this read
            connection.tasks.start(self._say(request), name="say farewell")
        else:
            self._end(request)

    async def _say(self, request: v.Close) -> None:
        """Ends the sessions first: a client that gets close-ok may rely on its exclusive queues' being gone."""
        connection = self._connection
        try:
            async with asyncio.timeout(_PATIENCE):
                await connection.end_sessions()
        except TimeoutError:
            log.warning("connection ends before its requests do", connection=connection.name)
        finally:
            self._end(request)

    def _end(self, request: v.Close) -> None:
        if not self._connection.lost:
            self._connection.engine.succeed(request)
            self._connection.write()
            self._connection.part(peer_first=not request.reason)  # none when it was the client's own wish
