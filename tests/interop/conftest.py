"""One broker for all tests with real clients: Hopline, or what HOPLINE_TEST_AMQP=host:port points at."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.interop_address import BrokerAddress
from tests.support.interop_pika import connected
from tests.support.ports import free_port
from tests.support.stack import Stack, running_stack

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    import pika
    from pika.adapters.blocking_connection import BlockingChannel


_PAGES = free_port()  # where the pages are from that may open a WebSocket
_SETTINGS = {
    "HOPLINE_TLS_SELF_SIGNED": "true",
    "HOPLINE_AMQPS_PORT": str(free_port()),
    "HOPLINE_WEBSOCKET_ORIGINS": f"http://localhost:{_PAGES}",
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerAddress]:
    """The broker's address; the stack is started once for all tests."""
    if given := os.environ.get("HOPLINE_TEST_AMQP"):
        yield BrokerAddress.parse(given)
        return
    with running_stack(tmp_path_factory.mktemp("hopline") / "data", _SETTINGS) as stack:
        yield stack.address


@pytest.fixture(scope="session")
def secure(broker: BrokerAddress) -> BrokerAddress:
    """The port for TLS alone."""
    return replace(broker, port=int(_SETTINGS["HOPLINE_AMQPS_PORT"]))


@pytest.fixture(scope="session")
def certificate(broker: BrokerAddress) -> Path:
    """What the stack signed itself, for clients to trust. Of Hopline's own stack alone."""
    [stack] = [each for each in Stack.running if each.address == broker]
    return stack.data / "tls" / "self-signed.pem"


@pytest.fixture(scope="session")
def page_port() -> int:
    """Of the origin whose pages may open a WebSocket."""
    return _PAGES


@pytest.fixture
def name() -> str:
    """A name that nothing on the broker has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connection(broker: BrokerAddress) -> Iterator[pika.BlockingConnection]:
    """A connection of pika's blocking kind."""
    with connected(broker) as opened:
        yield opened


@pytest.fixture
def channel(connection: pika.BlockingConnection) -> BlockingChannel:
    """A channel of `connection`."""
    return connection.channel()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the stack has logged belongs to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.extend(("Hopline's log", stack.log_tail()) for stack in Stack.running)
    return report
