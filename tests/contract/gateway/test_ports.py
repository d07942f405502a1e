"""Ports that operators set while gateways run: opened, changed and closed, each gateway for itself, and told of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common.clients.ports import PortsClient
from services.common.ports.port import PLAIN, Port, Terms
from services.common.ports.state import NOT_SAID, Where
from services.gateway.connections.entrance import Entrance
from services.rpc.store_pb2 import Record
from tests.support.broker_house import BrokerHouse
from tests.support.ports import free_port
from tests.support.programs import until
from tests.support.sasl_client import SaslClient


@pytest_asyncio.fixture(loop_scope="session")
async def ports(broker: BrokerHouse) -> AsyncIterator[PortsClient]:
    """As an operator sets them; there are none afterwards."""
    async with PortsClient(broker.address_of("store")) as client:
        yield client
        for each in await client.ports():
            if not each.of_settings:
                await client.remove(each.port.name)
        entrances = [gateway._listener.entrances for gateway in broker.gateways]
        await until(lambda: all(set(each) == {"amqp"} for each in entrances))


async def told(ports: PortsClient, name: str) -> list[Where]:
    """When both gateways have said what became of it."""
    async with asyncio.timeout(20):
        while True:
            wheres = next(each.gateways for each in await ports.ports() if each.port.name == name)
            found = [each for each in wheres if each.trouble != NOT_SAID]
            if len(found) == 2:
                return found


async def test_two_gateways_on_one_machine(
    broker: BrokerHouse, ports: PortsClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has the address, the other says why it has not, once, and takes it when the first is gone."""
    port = free_port()
    tries: list[Entrance] = []
    open_ = Entrance.open
    monkeypatch.setattr(Entrance, "open", lambda entrance: (tries.append(entrance), open_(entrance))[1])
    monkeypatch.setattr("services.gateway.connections.ports._AGAIN", 0.05)
    with capture_logs() as logged:
        await ports.put(name, Terms(host="127.0.0.1", port=port))
        found = await told(ports, name)
        await until(lambda: len(tries) > 5)
    assert sorted((where.at, where.trouble) for where in found) == [
        ((), "Address already in use"),
        ((f"127.0.0.1:{port}",), ""),
    ]
    [line] = [line for line in logged if line["log_level"] == "error"]
    assert (line["event"], line["port"], "hopline ports" in line["do"]) == ("a port cannot be opened", name, True)
    client = await broker.connect(port=port)
    first = next(each._listener for each in broker.gateways if name in each._listener.entrances)
    second = next(each._listener for each in broker.gateways if each._listener is not first)
    first.entrances[name].close()
    await until(lambda: name in second.entrances)
    await client.declare("")  # the former connection is still open
    assert (await broker.connect(port=port)).of(commands.Connection.OpenOk)


async def test_removed(broker: BrokerHouse, ports: PortsClient, name: str) -> None:
    """No client can connect any more; open connections stay."""
    port = free_port()
    await ports.put(name, Terms(host="127.0.0.1", port=port))
    await told(ports, name)
    client = await broker.connect(port=port)
    await client.declare(name)
    await ports.remove(name)
    await until(lambda: not any(name in gateway._listener.entrances for gateway in broker.gateways))
    with pytest.raises(ConnectionRefusedError):
        await broker.connect(port=port)
    client.publish(b"still here", name)
    await client.consume(name)
    assert await client.bodies(1) == [b"still here"]
    await client.close()


async def test_changed(broker: BrokerHouse, ports: PortsClient, name: str) -> None:
    """Its options hold for new connections, on the same sockets; with another address it listens there instead."""
    first, second = free_port(), free_port()
    await ports.put(name, Terms(host="127.0.0.1", port=first))
    await told(ports, name)
    listener = next(each._listener for each in broker.gateways if name in each._listener.entrances)
    entrance = listener.entrances[name]
    await ports.put(name, Terms(host="127.0.0.1", port=first, mechanisms=("PLAIN",)))
    await until(lambda: entrance.mechanisms == ("PLAIN",))
    async with SaslClient(first) as client:
        assert client.mechanisms == ["PLAIN"]
    assert listener.entrances[name] is entrance
    await ports.put(name, Terms(host="127.0.0.1", port=second))
    await until(lambda: any(e is not entrance for g in broker.gateways if (e := g._listener.entrances.get(name))))
    assert (await broker.connect(port=second)).of(commands.Connection.OpenOk)
    with pytest.raises(ConnectionRefusedError):
        await broker.connect(port=first)


async def test_terms_that_cannot_be_met(broker: BrokerHouse, ports: PortsClient, name: str) -> None:
    """Close the port: it is not served on terms that are not wanted any more. What it misses is told."""
    port = free_port()
    await ports.put(name, Terms(host="127.0.0.1", port=port))
    await told(ports, name)
    await ports.put(name, Terms(host="127.0.0.1", port=port, transports=("tls",)))
    found = await told(ports, name)
    assert {where.trouble for where in found} == {"transport tls is not there: set HOPLINE_TLS_CERTIFICATE"}
    with pytest.raises(ConnectionRefusedError):
        await broker.connect(port=port)
    await ports.put(name, Terms(host="127.0.0.1", port=port, transports=(PLAIN,)))
    await until(lambda: any(name in gateway._listener.entrances for gateway in broker.gateways))
    assert (await broker.connect(port=port)).of(commands.Connection.OpenOk)


async def test_a_name_that_is_not_found(ports: PortsClient, name: str) -> None:
    """Is told, of every gateway."""
    await ports.put(name, Terms(host="nowhere.invalid", port=free_port()))
    assert all(where.trouble and not where.at for where in await told(ports, name))


async def test_a_record_in_a_name_of_the_settings(broker: BrokerHouse, ports: PortsClient) -> None:
    """Changes nothing: gateways have such ports of their settings only."""
    record = Record(kind="port", key="amqp", value=b'{"name": "amqp", "port": 1}')
    await ports._store.put_records([record])
    await ports.put("next", Terms(host="127.0.0.1", port=free_port()))
    await told(ports, "next")
    assert (await broker.connect()).of(commands.Connection.OpenOk)
    await ports._store.put_records(deletes=[record])


@pytest.mark.parametrize(
    "hosts", [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.1", "")], ids=["same", "in all", "all"]
)
@pytest.mark.parametrize("together", [True, False])
async def test_two_ports_at_one_address(
    broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, str], *, together: bool
) -> None:
    """Also where gateways share their ports, one of these waits for the other: they may have other terms."""
    listener = broker.gateways[0]._listener
    monkeypatch.setattr(listener, "settings", listener.settings.model_copy(update={"gateways": 2}))
    port = free_port()
    first, second = (Entrance(Port(name=f"{name}-{host}", host=host, port=port), listener) for host in hosts)
    opening = [first.open(), second.open()]
    done = (
        await asyncio.gather(*opening, return_exceptions=True) if together else [await _tried(each) for each in opening]
    )
    first.close()
    again = await _tried(second.open())
    second.close()
    assert [str(each) for each in done if each] == ["[Errno 98] Address already in use"]
    assert again is None


async def _tried(opening: Coroutine[None, None, None]) -> BaseException | None:
    [failure] = await asyncio.gather(opening, return_exceptions=True)
    return failure
