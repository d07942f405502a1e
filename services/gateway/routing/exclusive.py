"""Exclusive queues go with their connection (AMQP 0-9-1, 1.7.2.1.5), session or link: at once, or as soon as a router
answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from itertools import islice
from typing import Protocol

import structlog

from services.common.errors import BrokerError, Unavailable
from services.common.remedies import ROUTER
from services.common.runtime import Tasks
from services.common.topology.life import Asker
from services.rpc import router_pb2

log = structlog.get_logger()

_AT_ONCE = 100  # requests: the router decides together what comes together
_SOON = 1.0  # seconds, when no router answered; asking takes its time by itself then
_LATER = 60.0  # when the answer was another one, which may be the same again


class Changes(Protocol):
    """The part of the router's client that changes the topology."""

    def change(self, request: router_pb2.ChangeRequest) -> Awaitable[router_pb2.ChangeReply]: ...


class Owner(Protocol):
    """A connection that declares exclusive queues, and is their owner by its name."""

    owns_queues: bool

    @property
    def name(self) -> str: ...


class ExclusiveQueues:
    """Of connections of a gateway, their sessions and links. When it goes itself, or is lost, the router sees to it."""

    def __init__(self, topology: Changes) -> None:
        self._topology = topology
        self._left: dict[Asker, None] = {}  # they are gone, and their queues may not be
        self._tasks = Tasks()
        self._deleting: asyncio.Task[None] | None = None

    async def delete(self, connection: Owner) -> None:
        """Those of a connection that ends: they are gone when this returns, or will be when a router answers."""
        await self.end(Asker(connection.name))
        connection.owns_queues = False

    async def end(self, whose: Asker) -> None:
        """The same of a session or a link as well."""
        if failure := await self._ask(whose):
            what = "exclusive queues stay until a router answers"
            log.warning(what, connection=whose.connection, error=failure.text, do=ROUTER)
            self._left[whose] = None
            if self._deleting is None or self._deleting.done():
                self._deleting = self._tasks.start(self._delete_at_last(), "delete exclusive queues")

    async def stop(self) -> None:
        """Asks no more: the router does it with the gateway's place."""
        await self._tasks.stop()

    async def _delete_at_last(self) -> None:
        pause = _SOON
        while self._left:
            await asyncio.sleep(pause)
            some = list(islice(self._left, _AT_ONCE))
            failures = list(filter(None, await asyncio.gather(*map(self._ask_again, some))))
            hopeful = len(failures) < len(some) or any(isinstance(each, Unavailable) for each in failures)
            pause = _SOON if hopeful else _LATER
            if failures:
                left, reason = len(self._left), failures[0].text
                log.warning("exclusive queues still there, trying again", owners=left, reason=reason, do=ROUTER)
        log.info("exclusive queues of all connections, sessions and links that are gone are deleted")

    async def _ask_again(self, whose: Asker) -> BrokerError | None:
        failure = await self._ask(whose)
        del self._left[whose]
        if failure:
            self._left[whose] = None  # after the others, which it may have nothing to do with
        return failure

    async def _ask(self, whose: Asker) -> BrokerError | None:
        try:
            await self._topology.change(_request(whose))
        except BrokerError as failure:
            return failure
        return None


def _request(whose: Asker) -> router_pb2.ChangeRequest:
    request = router_pb2.ChangeRequest(connection=whose.connection, session=whose.session, link=whose.link)
    if whose.link:
        request.close_link.SetInParent()
    elif whose.session:
        request.close_session.SetInParent()
    else:
        request.close_connection.SetInParent()
    return request
