"""closeIdleConnections: those that have asked for nothing, and were sent no message, for long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.common.clock import epoch_ms, monotonic
from services.common.errors import Unavailable
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.tree.connected import Connected

_REASON: Final = "closed via management: it was idle"
_AGAIN: Final = 0.1  # seconds
_MOST: Final = {"idleTimeMillis": 1 << 53, "timeoutMillis": 60_000}
"""Of parameters: nobody waits for longer."""


async def close_idle(connected: Connected, virtual_host: str, told: Mapping[str, Any]) -> int:
    """Gives how many. Beats keep none; of an older gateway nobody knows, and none is closed.

    Raises IllegalConfiguration; Unavailable where a gateway does not answer, once those of the others were told to
    go, and where it waits and some are still there after their time.
    """
    for name, most in _MOST.items():
        if not 0 <= told[name] <= most:
            raise IllegalConfiguration(f"parameter '{name}' of closeIdleConnections: 0 to {most} is wanted")
    await connected.now()
    closed = await connected.close_all(list(_idle(connected, virtual_host, told["idleTimeMillis"])), _REASON)
    if told["waitForClose"]:
        await _gone(connected, closed.names, told["timeoutMillis"] / 1000)
    closed.check()
    return len(closed.names)


def _idle(connected: Connected, virtual_host: str, idle: int) -> Iterator[str]:
    until = epoch_ms() - idle
    for name, told in connected.last.get(virtual_host, {}).items():
        if 0 < told.connection.last_used_ms <= until:
            yield name


async def _gone(connected: Connected, names: set[str], seconds: float) -> None:
    until = monotonic() + seconds
    await connected.now()
    while left := connected.left(names):
        if monotonic() >= until:
            raise Unavailable(f"{len(left)} of {len(names)} connections that were told to go are still there")
        await asyncio.sleep(_AGAIN)
        await connected.now()
