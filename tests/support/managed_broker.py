"""A whole broker in this process, with its management."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.mgmt.service import Service
from tests.support.broker_house import BrokerHouse


@asynccontextmanager
async def managed_broker(folder: Path, **settings: Any) -> AsyncIterator[tuple[BrokerHouse, Service]]:
    """Both serve; mgmt finds the one gateway, to which it connects for what goes by hand."""
    async with BrokerHouse(folder, gateways=1, http_host="127.0.0.1", http_port=0, **settings) as house:
        mgmt = Service(house.settings_at(1))
        await mgmt.start()
        yield house, mgmt
        await mgmt.stop()
