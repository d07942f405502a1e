"""Definitions as bytes, for the command line."""

from __future__ import annotations

import json

from services.common.definitions import Taken
from services.mgmt.rabbitmq.giving import give, give_virtual_host
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rabbitmq.taking import take


class Definitions:
    """Taken and given; `virtual_host` is None for all of it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def take(self, data: bytes, virtual_host: str | None) -> Taken:
        """Raises as `taking.take`."""
        return await take(self._broker, data, virtual_host)

    async def give(self, virtual_host: str | None) -> bytes:
        """JSON. Raises NotFound where there is no such virtual host."""
        house, objects, _ = self._broker
        if virtual_host is None:
            return _json(await give(house, objects))
        await objects.known()
        objects.check_virtual_host(virtual_host)
        return _json(await give_virtual_host(objects, virtual_host))


def _json(told: object) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode()
