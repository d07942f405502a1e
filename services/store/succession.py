"""A store process that has begun to write tells the one before, which may not know: it may be cut off from the engine.

That one would go on with renewals, and with what its memory has, while this one gives the same partitions to others. It
may be out of reach for now, and who it was nobody knows: a process that was restarted meanwhile has heard of none. So
each process that may listen is told until it has answered. It goes by the starts of the store, which the engine has
counted: one that is late with this, and does not write any more itself, ends nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from services.common.clients.reachable import is_gone
from services.common.clients.store import StoreClient
from services.common.clients.stores import ROLE
from services.common.errors import BrokerError
from services.rpc.store_pb2 import KeepAliveRequest

_ANSWER_SECONDS = 1.0
_AGAIN_SECONDS = 1.0


async def tell(member: str, incarnation: int, writers: Callable[[], Awaitable[list[str]]]) -> None:
    """For ever: whoever listens at one of `writers` hears that `member` writes, since that start of the store."""
    request = KeepAliveRequest(member=member, role=ROLE, incarnation=incarnation)
    answered: set[str] = set()
    while True:
        with suppress(OSError):  # the store's name leads nowhere for now
            untold = [each for each in await writers() if each not in answered]
            heard = await asyncio.gather(*(_is_heard(each, request) for each in untold))
            answered.update(each for each, is_heard in zip(untold, heard, strict=True) if is_heard)
        await asyncio.sleep(_AGAIN_SECONDS)


async def _is_heard(address: str, request: KeepAliveRequest) -> bool:
    if await is_gone(address):
        return False
    store = StoreClient(address)
    try:
        await store.keep_alive(request, _ANSWER_SECONDS)
    except BrokerError:
        return False
    finally:
        await store.close()
    return True
