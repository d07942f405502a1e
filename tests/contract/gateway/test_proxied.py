"""A client behind a balancer is at its own address, where the balancer is one that is believed."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest
from pamqp import commands
from structlog.testing import capture_logs

from services.gateway.transport.balancers import Balancers
from tests.support.amqp_playbook import HEADER
from tests.support.broker_house import BrokerHouse
from tests.unit.gateway.transport.test_proxy_header import IPV4, IPV6, addresses, header

_BALANCER = "127.0.0.77"
_HERE = header(0x21, 0x11, addresses("127.0.0.5", 50_000))


@pytest.fixture
def listener(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of the first gateway, which believes one balancer for this test."""
    listener = broker.gateways[0]._listener
    monkeypatch.setattr(listener, "balancers", Balancers([ip_network(_BALANCER)], listener.tasks))
    return listener


async def _answer(broker: BrokerHouse, *pieces: bytes, source: str) -> bytes:
    """Everything that the gateway says before it closes, or the beginning of connection.start."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0], local_addr=(source, 0))
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.01)
    try:
        async with asyncio.timeout(10):
            return await reader.read(8)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_client_s_address_counts(broker: BrokerHouse, listener: Any) -> None:
    """The guest of this machine comes in by a balancer from this machine only."""
    await broker.connect(source=_BALANCER, before=_HERE)
    [*_, connection] = listener._connections
    assert (connection.peer, connection.peer_host) == ("127.0.0.5:50000", "127.0.0.5")
    client = await broker.connect(source=_BALANCER, before=IPV4)
    [close] = client.of(commands.Connection.Close)
    assert (close.reply_code, "only connect from this machine" in close.reply_text) == (403, True)


async def test_an_address_of_ipv6(broker: BrokerHouse, listener: Any) -> None:
    """Is written in brackets, as that of a client without a balancer is: else its port is taken for a part of it."""
    assert await _peers(broker, listener, IPV6 + HEADER) == ["[2001:db8::7]:50001"]


async def _peers(broker: BrokerHouse, listener: Any, first: bytes) -> list[str]:
    """Of the connection that begins so."""
    before = set(listener._connections)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0], local_addr=(_BALANCER, 0))
    writer.write(first)
    await reader.read(1)
    found = [each.peer for each in listener._connections if each not in before]
    writer.close()
    return found


async def test_a_balancer_speaks_for_itself(broker: BrokerHouse, listener: Any) -> None:
    """Its health checks (LOCAL) come from its own address, and so do clients whose address it does not know."""
    for first in (header(0x20, 0), header(0x21, 0)):
        await broker.connect(source=_BALANCER, before=first)
        [*_, connection] = listener._connections
        assert connection.peer_host == _BALANCER


async def test_the_header_may_come_in_pieces(broker: BrokerHouse, listener: Any) -> None:
    """Connection.start follows when the header and AMQP's own are whole."""
    pieces = [_HERE[:5], _HERE[5:20], _HERE[20:] + HEADER[:3], HEADER[3:]]
    assert (await _answer(broker, *pieces, source=_BALANCER)).startswith(b"\1\0\0")


async def test_a_balancer_without_a_header_is_not_served(broker: BrokerHouse, listener: Any) -> None:
    """Else a client behind it could write one. The log says what to do."""
    with capture_logs() as logged:
        assert await _answer(broker, HEADER, source=_BALANCER) == b""
    [line] = [line for line in logged if line["log_level"] == "warning"]
    assert "HOPLINE_PROXY_SOURCES" in line["do"]


async def test_a_second_header_is_the_client_s(broker: BrokerHouse, listener: Any) -> None:
    """What a client writes behind the balancer's header is no AMQP."""
    assert await _answer(broker, _HERE + _HERE + HEADER, source=_BALANCER) == HEADER


async def test_no_other_peer_is_believed(broker: BrokerHouse, listener: Any) -> None:
    """A header from another address is a wrong protocol header, and without one it is served as always."""
    assert await _answer(broker, _HERE + HEADER, source="127.0.0.78") == HEADER
    assert (await _answer(broker, HEADER, source="127.0.0.78")).startswith(b"\1\0\0")
