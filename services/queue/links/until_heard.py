"""Until all is carried out that a gateway has said when its stream was over, and had a moment to come again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from services.queue.host import Host
from services.queue.machine.queue import Queue

_AGAIN = 3  # moments in which it may say more


async def until_heard(host: Host, origin: int, had: Iterable[Queue], moment: float) -> None:
    """Returns when leases held for so many seconds, and all that came in them was heard, also of later streams.

    `had`: queues of which it has deliveries, that others may claim as well. What comes much later is not waited for:
    its gateway may always have more to say.
    """
    await _certain_for(host, moment)
    newest, again = host.late.newest, _AGAIN
    while host.hears(origin, newest) or any(map(host.claims.awaited, list(had))):
        await _certain_for(host, moment)
        if again:  # what a gateway says when it comes again has several frames
            newest, again = host.late.newest, again - 1


async def _certain_for(host: Host, moment: float) -> None:
    await asyncio.sleep(moment)
    while not host.certain:
        await host.until_certain()
        await asyncio.sleep(moment)
