"""How a connection ends: its requests are carried out and answered, then the client is told, then the socket ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import proxy

import structlog

from services.common.containment import for_each

if TYPE_CHECKING:
    from services.gateway import vocabulary as v
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()

_PATIENCE = 2.0  # seconds: for a peer to answer the close, and for its requests to be carried out
_DO = "see what does not answer: hopline health"


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
        self._without_sessions(lambda: self._end(request))

    def prepare(self, request: v.EndSessions) -> None:
        """The engine will close the connection, and waits until all is answered that was asked before."""
        self._without_sessions(lambda: self._go_on(request))

    def _without_sessions(self, then: Callable[[], None]) -> None:
        """Ends the sessions first: a client that gets close-ok may rely on its exclusive queues' being gone."""
        connection = self._connection
        if connection.sessions or connection.owns_queues:
            connection.parting = True  # before the flush that ends this read
            connection.tasks.start(self._end_sessions(then), name="say farewell")
        else:
            then()

    async def _end_sessions(self, then: Callable[[], None]) -> None:
        connection = self._connection
        try:
            async with asyncio.timeout(_PATIENCE):
                await connection.end_sessions()
        except TimeoutError:
            log.warning("connection ends before its requests do", connection=connection.name, do=_DO)
        finally:
            then()

    def _go_on(self, request: v.EndSessions) -> None:
        for_each("ending a connection", (request,), self._close, lambda *_: self._connection.abort())

    def _close(self, request: v.EndSessions) -> None:
        if not self._connection.lost:
            self._connection.engine.succeed(request)
            self._connection.take_pending()
            self._connection.write()

    def _end(self, request: v.Close) -> None:
        if not self._connection.lost:
            self._connection.engine.succeed(request)
            self._connection.write()
            self._connection.part(peer_first=not request.reason)  # none when it was the client's own wish
