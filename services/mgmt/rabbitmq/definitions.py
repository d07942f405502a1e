"""Definitions as bytes, for the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Final

from services.common.runtime import end
from services.mgmt.rabbitmq.giving import give, give_virtual_host
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rabbitmq.taking import Progress, take

_EVERY: Final = 0.3  # seconds


class Definitions:
    """Taken and given; `virtual_host` is None for all of it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def take(self, data: bytes, virtual_host: str | None) -> AsyncGenerator[tuple[Progress, bool], None]:
        """How far it is, now and then, and whether that is all. Raises as `taking.take`; ends with its reader."""
        progress = Progress()
        taking = asyncio.ensure_future(take(self._broker, data, virtual_host, progress))
        try:
            while not (await asyncio.wait({taking}, timeout=_EVERY))[0]:
                yield progress, False
            taking.result()
            yield progress, True
        finally:
            await end((taking,))

    async def give(self, virtual_host: str | None) -> bytes:
        """JSON. Raises NotFound where there is no such virtual host."""
        house, objects, _ = self._broker
        if virtual_host is None:
            return _json(await give(house, objects))
        await objects.known()
        objects.check_virtual_host(virtual_host)
        return _json(await give_virtual_host(house, objects, virtual_host))


def _json(told: object) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode()
