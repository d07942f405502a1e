from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from services.mgmt.service import Service
from tests.support.broker_house import BrokerHouse
from tests.support.managed_broker import managed_broker
from tests.support.rest import Get, asking

HOST = "%252F/%252F"  # a virtual host that is called as a slash is, below its node, twice encoded


class Managed(NamedTuple):
    """A whole broker in this process, and a client of its management."""

    house: BrokerHouse
    mgmt: Service
    ask: Get

    async def __call__(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, Any]:
        status, told, _ = await self.ask(f"/api/latest/{path}", user, method, body)
        return status, told

    async def headers(self, method: str, path: str, body: object = None) -> Any:
        return (await self.ask(f"/api/latest/{path}", "guest:guest", method, body))[2]


@pytest.fixture
async def managed(tmp_path: Path) -> AsyncIterator[Managed]:
    async with managed_broker(tmp_path) as (house, mgmt):
        yield Managed(house, mgmt, asking(mgmt.http_port))
