"""One broker for the tests that leave it as it was: two gateways, two queue processes, in the session's own loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pamqp.commands import Exchange

from tests.support.amqp_1_0_client import Client
from tests.support.broker_house import BrokerHouse
from tests.support.certificates import Authority


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here run in the loop in which the broker runs."""
    for item in items:
        if "contract/gateway" in str(item.path):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BrokerHouse]:
    """Shared; a test uses names of its own."""
    async with BrokerHouse(tmp_path_factory.mktemp("b")) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def clients(broker: BrokerHouse) -> AsyncIterator[list[Client]]:
    """Of AMQP 1.0 and of one container, one at each gateway."""
    clients = [Client(), Client()]
    for client, port in zip(clients, broker.ports, strict=False):
        await client.open(port, "guest", "guest", "/")
    yield clients
    for client in clients:
        client.abort()


@pytest_asyncio.fixture(loop_scope="session")
async def exchange(broker: BrokerHouse, name: str) -> AsyncIterator[str]:
    """A topic exchange."""
    client = await broker.connect()
    await client.call(1, Exchange.Declare(exchange=name, exchange_type="topic"), Exchange.DeclareOk)
    yield name
    await client.call(1, Exchange.Delete(exchange=name), Exchange.DeleteOk)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs certificates."""
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def name() -> str:
    """Of a queue or exchange that nothing else uses."""
    return f"t-{uuid.uuid4().hex[:10]}"
