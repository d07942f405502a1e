"""Requests that begin and end the links of a session: a link waits for its own, and for none of another's.

What a link is to receive from may have no owner, or its router be away, for half a minute: the session's other links go
on meanwhile. What was asked of the session before them, publishes and settlements too, is done before they begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from services.gateway.sessions.waiting import WaitingRequests
from services.gateway.vocabulary import (
    Bind,
    Cancel,
    CloseLink,
    Consume,
    DeclareQueue,
    DeleteQueue,
    FindNode,
    Produce,
    ReplaceQueue,
    Request,
)

if TYPE_CHECKING:
    from services.gateway.sessions.session import Session

OF_LINKS: Final = frozenset(
    {FindNode, Produce, DeclareQueue, ReplaceQueue, DeleteQueue, Bind, Consume, Cancel, CloseLink}
)
"""Kinds of requests that are carried out so, where they are a link's."""


class LinkRequests:
    """Of one session. `__bool__`: whether some link has any."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines: dict[int, WaitingRequests] = {}  # by link; what is being carried out stands first
        self._then: Callable[[], None] | None = None
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def handle(self, request: Request) -> None:
        """Carries it out when those of its link before it are done."""
        line = self._lines.get(request.link)
        if line is None:
            self._begin(request)
        elif not line.add(request):
            self._session.connection.hold(self._session)

    def _begin(self, request: Request) -> None:
        link, connection = request.link, self._session.connection
        if (work := self._session.start(request)) is None:
            return
        line = self._lines[link] = WaitingRequests(connection)
        self.tasks[link] = connection.tasks.start(self._finish(link, line, work), name="requests of a link")
        if not line.add(request):
            connection.hold(self._session)

    async def _finish(self, link: int, line: WaitingRequests, work: Coroutine[Any, Any, Any] | None) -> None:
        session = self._session
        while line:
            if work is not None:
                await session.finish(line.first, work)
            line.next()
            session.connection.flush()
            work = session.start(line.first) if line else None
        del self._lines[link], self.tasks[link]
        if self._then and not self._lines:
            self._then()
        session.relieve()

    def forget(self, link: int) -> None:
        """Drops what waits of a link, or with 0 of all."""
        for each, line in self._lines.items():
            if link in (0, each):
                line.forget_behind()

    def then(self, action: Callable[[], None]) -> None:
        """Does this when all of them are done."""
        self._then = action
