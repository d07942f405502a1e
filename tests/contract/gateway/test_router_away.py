"""No router answers: what needs one waits, everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common.clients import topology
from services.gateway.routing import bindings as gateway_bindings
from services.gateway.sessions.session import Session
from services.gateway.vocabulary import Request
from tests.support.broker_house import BrokerHouse

_MANY = 300
_LARGE = b"x" * (64 << 10)
_HELD = 3 << 20  # what may wait, and what one read brings besides
# Who stands still for longer than its place is good must hear a router, and here is none: machines pause for as long.
_PATIENT = {"lease_ttl_ms": 60_000, "place_ttl_ms": 60_000}


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    async with BrokerHouse(tmp_path, gateways=1, queues=1, **_PATIENT) as house:
        yield house


@pytest.fixture
def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bindings: an older router sends none, or they are too many."""
    monkeypatch.setattr(gateway_bindings, "_MOST", -1)


async def test_new_keys_are_routed(house: BrokerHouse) -> None:
    """While no router answers, bindings as a gateway knows them cannot change."""
    client = await house.connect()
    await client.declare("devices")
    await client.call(1, commands.Queue.Bind(0, "devices", "amq.topic", "devices.*"), commands.Queue.BindOk)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    await house.stop_router()
    for number in range(_MANY):
        client.publish(b"%d" % number, f"devices.{number}", exchange="amq.topic")
    await client.confirmed(_MANY, seconds=30)
    await client.consume("devices", no_ack=True)
    assert await client.bodies(_MANY) == [b"%d" % number for number in range(_MANY)]
    await house.start_router()


@pytest.mark.usefixtures("no_copy")
async def test_other_channels_and_known_routes_go_on(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of publishes that wait on one channel do not stop another one; they are all sent when a router comes."""
    client = await house.connect(channels=2)
    await client.declare("known")
    client.publish(b"before", "known")
    await client.consume("known", channel=2, no_ack=True)
    await client.bodies(1)
    await house.stop_router()
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    read: list[int] = []
    handle = Session.handle

    def counted(session: Session, request: Request) -> None:
        read.append(len(getattr(request, "bodies", ())))
        handle(session, request)

    monkeypatch.setattr(Session, "handle", counted)
    for number in range(_MANY):
        client.publish(b"%d" % number, f"unknown-{number}")
    while sum(read) < _MANY:
        await asyncio.sleep(0.01)
    for number in range(_MANY):
        client.publish(b"%d" % number, "known", channel=2)
    await client.bodies(_MANY + 1)
    await house.start_router()
    await client.confirmed(_MANY, seconds=30)


@pytest.mark.usefixtures("no_copy")
async def test_what_waits_is_bounded(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher whose messages wait is read no further when they are much: its socket holds it back."""
    waiting: list[int] = []
    handle = Session.handle

    def measured(session: Session, request: Request) -> None:
        handle(session, request)
        waiting.append(sum(len(body) for each in session._waiting or () for body in getattr(each, "bodies", ())))

    monkeypatch.setattr(Session, "handle", measured)
    client = await house.connect()
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    await house.stop_router()
    for number in range(100):
        client.publish(_LARGE, f"unknown-{number}")
    while not any(connection._holds for connection in house.gateways[0]._listener._connections):
        await asyncio.sleep(0.01)
    assert max(waiting) < _HELD
    await house.start_router()
    await client.confirmed(100, seconds=30)


@pytest.mark.usefixtures("no_copy")
async def test_it_says_why(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time in which a router can be restarted the connection ends, by an error that names the router."""
    monkeypatch.setattr(topology, "_PATIENCE", 0.3)
    await house.stop_router()
    for request in (commands.Queue.Declare(queue="q"), commands.Exchange.Declare(exchange="e")):
        client = await house.connect()
        client.send(1, request)
        close = await client.expect(commands.Connection.Close)
        assert close.reply_code == 541
        assert "no router has answered for" in close.reply_text
    client = await house.connect()
    client.publish(b"", "unknown")
    assert "no router" in (await client.expect(commands.Connection.Close)).reply_text
    await house.start_router()


@pytest.mark.usefixtures("no_copy")
async def test_a_client_that_has_closed_meanwhile(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of a closed client that waited for no confirms, and that no router routes, are dropped, and logged."""
    monkeypatch.setattr(topology, "_PATIENCE", 3.0)
    client = await house.connect()
    await house.stop_router()
    client.publish(b"", "unknown")
    with capture_logs() as logged:
        await client.close()
        async with asyncio.timeout(10):
            while not (refused := [line for line in logged if line["event"] == "refused, its client has gone"]):
                await asyncio.sleep(0.05)
    assert "no router" in refused[0]["error"]
    await house.start_router()
