"""One broker whose ledger is listened to, for all tests here, in the session's own loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.broker_house import BrokerHouse
from tests.support.nats_server import NatsServer
from tests.support.told_ledger import ToldLedger


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here run in the loop in which the broker runs."""
    for item in items:
        if "contract/ledger" in str(item.path):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    """A NATS server."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    await server.start()
    yield server
    server.kill()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ledger(bus: NatsServer) -> AsyncIterator[ToldLedger]:
    """Everything that is told."""
    told = ToldLedger()
    await told.listen(bus.address)
    yield told
    await told.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def recorded(
    tmp_path_factory: pytest.TempPathFactory, bus: NatsServer, ledger: ToldLedger
) -> AsyncIterator[BrokerHouse]:
    """Shared; a test uses names of its own."""
    house = BrokerHouse(tmp_path_factory.mktemp("r"), nats_url=bus.address)
    await house.start()
    yield house
    await house.stop()


@pytest.fixture
def name() -> str:
    """Of a queue, exchange or message that nothing else uses."""
    return f"t-{uuid.uuid4().hex[:10]}"
