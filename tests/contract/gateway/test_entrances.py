"""Ports that differ: what a client may begin with at each, how it may sign in, how many may be there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import ip_network
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common.errors import PreconditionFailed
from services.common.ports.port import Port
from services.gateway.connections.entrance import Entrance
from services.gateway.transport.balancers import Balancers
from services.gateway.transport.certificates import Certificates, Files
from tests.support.amqp_playbook import HEADER
from tests.support.broker_house import BrokerHouse
from tests.support.certificates import Authority
from tests.support.programs import until
from tests.support.sasl_client import SaslClient
from tests.support.tls_by_hand import ByHand
from tests.unit.gateway.transport.test_proxy_header import IPV4

_BALANCER = "127.0.0.78"
_OPEN, _SECRET = {"PLAIN", "AMQPLAIN"}, {"SCRAM-SHA-256", "SCRAM-SHA-512"}

Opened = Callable[..., Awaitable[int]]


@pytest.fixture
def listener(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of the first gateway, which believes one balancer for this test."""
    listener = broker.gateways[0]._listener
    monkeypatch.setattr(listener, "balancers", Balancers([ip_network(_BALANCER)], listener.tasks))
    return listener


@pytest_asyncio.fixture(loop_scope="session")
async def opened(listener: Any) -> AsyncIterator[Opened]:
    """Opens a port with some terms; gives its number."""
    entrances: list[Entrance] = []

    async def open_(**terms: Any) -> int:
        entrances.append(Entrance(Port(name="t", host="127.0.0.1", port=0, **terms), listener))
        await entrances[-1].open()
        return int(entrances[-1].addresses[0].rpartition(":")[2])

    yield open_
    for entrance in entrances:
        entrance.close()


async def offered(client: SaslClient) -> set[str]:
    async with client:
        return set(client.mechanisms)


async def start_over_tls(port: int, authority: Authority, before: bytes) -> bytes:
    """Connection.start, of a client behind the balancer."""
    client = ByHand(authority.client())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(_BALANCER, 0))
    writer.write(before + client.hello())
    await client.finish(reader, writer, HEADER)
    start = await client.read(reader, 1 << 16)
    writer.close()
    return start


async def test_some_mechanisms(opened: Opened) -> None:
    """A port's clients are offered those of the port, in its order, and may not sign in by others."""
    async with SaslClient(await opened(mechanisms=("SCRAM-SHA-512", "PLAIN"))) as client:
        assert client.mechanisms == ["SCRAM-SHA-512", "PLAIN"]
        assert (await client.begin("AMQPLAIN", b"")).reply_code == 503


async def test_passwords_that_others_could_hear(
    opened: Opened, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they may not, only clients with TLS, or on this machine, are offered PLAIN."""
    tls = listener.transports["tls"]
    monkeypatch.setattr(tls, "certificates", Certificates(Files((authority.sign("broker", ["localhost"]),))))
    port = await opened(unsecured_passwords=False)
    assert await offered(SaslClient(port)) == _OPEN | _SECRET
    assert await offered(SaslClient(port, source=_BALANCER, before=IPV4)) == _SECRET
    assert b" AMQPLAIN " in await start_over_tls(port, authority, IPV4)
    async with SaslClient(port, source=_BALANCER, before=IPV4) as client:
        assert (await client.begin("PLAIN", b"\0guest\0guest")).reply_code == 503
    free = await opened(unsecured_passwords=True)
    assert await offered(SaslClient(free, source=_BALANCER, before=IPV4)) == _OPEN | _SECRET


@pytest.mark.parametrize("wanted", [True, False])
async def test_as_the_settings_say(
    opened: Opened, listener: Any, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    """A port that says nothing of passwords does as HOPLINE_UNSECURED_PASSWORDS."""
    settings = listener.settings.model_copy(update={"unsecured_passwords": wanted})
    monkeypatch.setattr(listener, "settings", settings)
    there = await offered(SaslClient(await opened(), source=_BALANCER, before=IPV4))
    assert there == (_OPEN | _SECRET if wanted else _SECRET)


async def test_no_way_to_sign_in(opened: Opened) -> None:
    """A client for which no mechanism is left is offered none, and the log says why."""
    port = await opened(unsecured_passwords=False, mechanisms=("PLAIN",))
    with capture_logs() as logged:
        assert await offered(SaslClient(port, source=_BALANCER, before=IPV4)) == set()
    [line] = [line for line in logged if line["event"] == "a client has no way to sign in"]
    assert "HOPLINE_UNSECURED_PASSWORDS" in line["do"]


async def test_its_own_limit(broker: BrokerHouse, opened: Opened) -> None:
    """One more than may be there by a port hears so from connection.open, 530; others, and later ones, come in."""
    port = await opened(most=2)
    first, _ = [await broker.connect(port=port) for _ in range(2)]
    with capture_logs() as logged:
        for _ in range(2):
            [close] = (await broker.connect(port=port)).of(commands.Connection.Close)
            assert (close.reply_code, "port 't'" in close.reply_text) == (530, True)
    assert len([line for line in logged if line["log_level"] == "warning"]) == 1
    assert (await broker.connect()).of(commands.Connection.OpenOk)
    connections = broker.gateways[0]._listener._connections
    number = first.writer.get_extra_info("sockname")[1]
    [its] = [connection for connection in connections if connection.peer.endswith(f":{number}")]
    await first.close()
    await until(lambda: its not in connections)
    assert (await broker.connect(port=port)).of(commands.Connection.OpenOk)


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"transports": ("tls",)}, "transport tls is not there: set HOPLINE_TLS_CERTIFICATE"),
        ({"transports": ("carrier-pigeon",)}, "there is no transport carrier-pigeon; there are plain, tls, websocket"),
        ({"mechanisms": ("EXTERNAL",)}, r"EXTERNAL is not offered \(HOPLINE_SASL_MECHANISMS\): there are PLAIN, "),
        ({"protocols": ("mqtt",)}, "there is no protocol mqtt; there are amqp-0-9, amqp-1-0"),
    ],
)
async def test_what_is_not_there(opened: Opened, terms: dict[str, Any], why: str) -> None:
    """A port that wants what the gateway has not is not opened, and says what it misses."""
    with pytest.raises(PreconditionFailed, match=why):
        await opened(**terms)


async def test_nothing_to_begin_with(opened: Opened, listener: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A WebSocket alone lies on nothing: it needs the socket as it is, or TLS."""
    monkeypatch.setattr(listener.transports["websocket"], "origins", ("*",))
    with pytest.raises(PreconditionFailed, match="websocket goes over plain, or over one that is secure, as tls"):
        await opened(transports=("websocket",))


async def test_what_a_port_does_not_take(
    broker: BrokerHouse, opened: Opened, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is no transport there, though it is at others: the protocol hears it, and does not know it."""
    tls = listener.transports["tls"]
    monkeypatch.setattr(tls, "certificates", Certificates(Files((authority.sign("broker", ["localhost"]),))))
    assert (await broker.connect(tls=authority.client())).of(commands.Connection.OpenOk)
    with pytest.raises(OSError, match=r"SSL|reset|EOF"):
        await broker.connect(port=await opened(transports=("plain",)), tls=authority.client())
