"""A store process until it may write, and how it is seen by people, then and later: as a member of its own store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from services.common.clients.stores import ROLE
from services.common.errors import BrokerError, InternalError
from services.rpc.store_pb2 import KeepAliveReply, KeepAliveRequest
from services.store.provider import Elsewhere

_LOOK_SECONDS = 0.2
_RENEWAL = 0.4  # of the time to live
_TELLING_SECONDS = 0.25

Ask = Callable[[KeepAliveRequest], Awaitable[KeepAliveReply]]

log = structlog.get_logger()


class Presence:
    """Of the process `member`, which says how it is at `address`."""

    def __init__(self, member: str, address: str, ttl_ms: int) -> None:
        self._member = member
        self._address = address
        self._ttl_ms = ttl_ms

    async def keep(self, ask: Ask, *, writes: bool) -> None:
        """For ever, with the store that `ask` asks; without an answer it is asked again."""
        request = self._request(writes=writes)
        while True:
            with suppress(BrokerError):
                await ask(request)
            await asyncio.sleep(self._ttl_ms / 1000 * _RENEWAL)

    async def succeed(self, ask: Ask) -> None:
        """Tells whoever `ask` asks that this process writes, if somebody is there: he may not know."""
        with suppress(BrokerError, TimeoutError):
            async with asyncio.timeout(_TELLING_SECONDS):
                await ask(self._request(writes=True))

    def _request(self, *, writes: bool) -> KeepAliveRequest:
        asked = [ROLE] if writes else []
        return KeepAliveRequest(
            member=self._member, role=ROLE, address=self._address, ttl_ms=self._ttl_ms, acquire=asked
        )


async def stand_by(provider: Elsewhere, told: Callable[[], Awaitable[None]]) -> bool:
    """Returns when nobody writes; gives whether somebody did. `told` is called once that is known.

    Raises InternalError where that cannot be found out at first; later it is asked until it can.
    """
    writer = await provider.occupied()
    if not writer:
        return False
    log.info("store stands by", writer=writer, do="if that is no process of this stack, take another HOPLINE_STORE_URL")
    await told()
    while writer:
        await asyncio.sleep(_LOOK_SECONDS)
        writer = await _look(provider)
    log.info("store takes over")
    return True


async def _look(provider: Elsewhere) -> str:
    """Who writes; whoever it was, where it is not known."""
    try:
        return await provider.occupied()
    except InternalError as failure:
        log.debug("cannot ask who writes", reason=str(failure))
        return "not known"
