from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from services.common.clients.mgmt import MgmtClient
from tests.support.broker_house import BrokerHouse
from tests.support.managed_broker import managed_broker
from tests.support.managing import Asking
from tests.support.rest import Get, asking


class Managed(NamedTuple):
    """A whole broker in this process, and its management node and REST."""

    house: BrokerHouse
    ask: Asking
    rest: Get
    client: MgmtClient


@pytest.fixture
async def managed(tmp_path: Path) -> AsyncIterator[Managed]:
    async with managed_broker(tmp_path) as (house, mgmt), MgmtClient(house.address_of("mgmt")) as client:
        yield Managed(house, Asking(client), asking(mgmt.http_port), client)
