"""A store process until it may write, and how operators see it, then and later: as a member of its own store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from services.common.clients.stores import ROLE
from services.common.clock import monotonic
from services.common.errors import BrokerError, InternalError
from services.rpc.store_pb2 import KeepAliveReply, KeepAliveRequest
from services.store.provider import Elsewhere, Unreachable

_LOOK_SECONDS = 0.2
_STARTING_SECONDS = 60.0  # for a database or servers that are started together with the store
_RENEWAL = 0.4  # of the time to live
_MEND = "start the database, or NATS, or mend the way to it; the store goes on by itself"

Ask = Callable[[KeepAliveRequest], Awaitable[KeepAliveReply]]

log = structlog.get_logger()


class Presence:
    """Registers the process `member`, which answers health checks at `address`."""

    def __init__(self, member: str, address: str, ttl_ms: int) -> None:
        self._member = member
        self._address = address
        self._ttl_ms = ttl_ms

    async def keep(self, ask: Ask, *, writes: bool) -> None:
        """Renews for ever with the store that `ask` calls; without an answer it asks again."""
        request = self._request(writes=writes)
        while True:
            with suppress(BrokerError):
                await ask(request)
            await asyncio.sleep(self._ttl_ms / 1000 * _RENEWAL)

    def _request(self, *, writes: bool) -> KeepAliveRequest:
        asked = [ROLE] if writes else []
        return KeepAliveRequest(
            member=self._member, role=ROLE, address=self._address, ttl_ms=self._ttl_ms, acquire=asked
        )


async def stand_by(provider: Elsewhere, told: Callable[[], Awaitable[None]]) -> None:
    """Returns when nobody writes. `told` is called once it is known that somebody does.

    Raises InternalError where the provider cannot be asked at first, though it was waited for while nobody was there;
    later it is asked until it can.
    """
    writer = await _at_first(provider)
    if not writer:
        return
    log.info("store stands by", writer=writer, do="if that is no process of this stack, take another HOPLINE_STORE_URL")
    await told()
    asking = _Asking(provider)
    while writer:
        await asyncio.sleep(_LOOK_SECONDS)
        writer = await asking.writer()
    log.info("store takes over")


async def _at_first(provider: Elsewhere) -> str:
    """Who writes. A process that ended here would be taken for a sick one, by whoever starts all of them at once."""
    waiting, deadline = False, monotonic() + _STARTING_SECONDS
    while True:
        try:
            return await provider.occupied()
        except Unreachable as failure:
            if monotonic() >= deadline:
                raise
            if not waiting:
                log.warning("waits for what keeps the data", reason=failure.text, do=_MEND)
            waiting = True
        await asyncio.sleep(_LOOK_SECONDS)


class _Asking:
    """Asks the provider for its writer; goes on if it cannot be asked, and logs that once."""

    def __init__(self, provider: Elsewhere) -> None:
        self._provider = provider
        self._fails = False

    async def writer(self) -> str:
        """The name of the process that writes, "" for none; "not known" where the provider cannot be asked."""
        try:
            writer = await self._provider.occupied()
        except InternalError as failure:
            if not self._fails:
                log.warning("cannot ask who writes, nor take over", reason=failure.text, do=_MEND)
            self._fails = True
            return "not known"
        if self._fails:
            log.info("it is known again who writes", writer=writer)
        self._fails = False
        return writer
