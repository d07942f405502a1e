"""Who is connected, as the tree shows it: asked of all gateways when somebody looks, and kept for a few seconds."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from services.common.clock import monotonic
from services.mgmt.tree.gateways import Gateways
from services.rpc.gateway_pb2 import Connection

OLDEST: Final = 5.0  # seconds


class Connected:
    """`last` has what was told last: connections by virtual host."""

    def __init__(self, gateways: Gateways) -> None:
        self.last: dict[str, list[Connection]] = {}
        self._gateways = gateways
        self._at = -OLDEST
        self._turn = asyncio.Lock()

    async def fresh(self) -> None:
        """Of the last five seconds. Those who ask at the same time wait for the same."""
        async with self._turn:
            if monotonic() - self._at >= OLDEST:
                await self._ask()

    async def close(self, name: str, reason: str) -> None:
        """As Gateways says; it is not there any more."""
        await self._gateways.close(name, reason)
        self.last = {host: [each for each in told if each.name != name] for host, told in self.last.items()}

    async def _ask(self) -> None:
        began, found = monotonic(), defaultdict[str, list[Connection]](list)
        for each in await self._gateways.connections():
            found[each.virtual_host].append(each)
        self.last, self._at = dict(found), began
