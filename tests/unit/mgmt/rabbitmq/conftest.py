from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from services.mgmt.service import Service
from services.mgmt.tree import recent
from tests.support.broker_house import BrokerHouse
from tests.support.managed_broker import managed_broker
from tests.support.rest import Get, asking


class Asked(NamedTuple):
    """A whole broker in this process, and a client of its management as RabbitMQ's tools are."""

    house: BrokerHouse
    mgmt: Service
    ask: Get

    async def __call__(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, Any]:
        status, told, _ = await self.ask(f"/api/{path}", user, method, body)
        return status, told

    async def get(self, path: str, user: str = "guest:guest") -> Any:
        status, told = await self("GET", path, user=user)
        assert status == 200, told
        return told


@pytest.fixture
async def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    monkeypatch.setattr(recent, "OLDEST", 0.0)
    async with managed_broker(tmp_path) as (house, mgmt):
        yield Asked(house, mgmt, asking(mgmt.http_port))
