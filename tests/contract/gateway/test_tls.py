"""TLS at the port of AMQP, told by a client's first bytes, and at one that is for TLS alone."""

from __future__ import annotations

import asyncio
import os
import ssl
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common.ports.port import Port
from services.common.ports.state import Account
from services.gateway.connections.entrance import Entrance
from services.gateway.connections.ports import Ports
from services.gateway.transport.balancers import Balancers
from services.gateway.transport.certificates import Certificates, Files
from services.rpc.store_pb2 import Records
from tests.support.amqp_playbook import HEADER
from tests.support.broker_house import BrokerHouse
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.programs import until
from tests.support.tls_by_hand import ByHand
from tests.unit.gateway.transport.test_proxy_header import addresses, header

START = b"\1\0\0"  # a method frame on channel 0


@pytest.fixture
def listener(broker: BrokerHouse, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of the first gateway, which has a certificate for this test."""
    listener = broker.gateways[0]._listener
    show(listener, monkeypatch, authority.sign("broker", ["localhost"]))
    return listener


def show(listener: Any, monkeypatch: pytest.MonkeyPatch, *certificates: Path, **more: Any) -> None:
    monkeypatch.setattr(listener.transports["tls"], "certificates", Certificates(Files(certificates, **more)))


@pytest_asyncio.fixture(loop_scope="session")
async def tls_only(listener: Any) -> AsyncIterator[int]:
    """A port for TLS alone."""
    entrance = Entrance(Port(name="t", host="127.0.0.1", port=0, transports=("tls",)), listener)
    await entrance.open()
    yield int(entrance.addresses[0].rpartition(":")[2])
    entrance.close()


async def opened(broker: BrokerHouse, port: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port or broker.ports[0])


async def test_one_port_for_both(broker: BrokerHouse, listener: Any, authority: Authority, name: str) -> None:
    """What one publishes over TLS another one gets without, and the other way round; large messages too."""
    secure = await broker.connect(tls=authority.client())
    plain = await broker.connect()
    large = os.urandom(3 << 20)
    for publisher, consumer in ((secure, plain), (plain, secure)):
        queue = f"{name}-{publisher is secure}"
        await publisher.declare(queue)
        for body in (b"small", large, b"last"):
            publisher.publish(body, queue)
        await consumer.consume(queue, tag=queue)
    assert await plain.bodies(3) == await secure.bodies(3) == [b"small", large, b"last"]


async def test_a_client_that_does_not_read(broker: BrokerHouse, listener: Any, authority: Authority, name: str) -> None:
    """Its backlog stays in the queue, as without TLS, and comes when it reads on."""
    consumer = await broker.connect(tls=authority.client())
    publisher = await broker.connect()
    await publisher.declare(name)
    await consumer.consume(name, no_ack=True)
    consumer.stop_reading()
    bodies = [bytes([number]) * (1 << 20) for number in range(40)]
    for body in bodies:
        publisher.publish(body, name)
    await publisher.writer.drain()
    await asyncio.sleep(0.5)
    [connection] = [each for each in listener._connections if each.peer == written(consumer)]
    assert connection._transport.get_write_buffer_size() < 8 << 20
    consumer.read_on()
    assert await consumer.bodies(40, seconds=60) == bodies


def written(client: Any) -> str:
    host, port = client.writer.get_extra_info("sockname")
    return f"{host}:{port}"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [1, 100, 1 << 16])
async def test_pieces(
    broker: BrokerHouse, listener: Any, authority: Authority, size: int, version: ssl.TLSVersion
) -> None:
    """However the first bytes come, and with AMQP's header in one piece with the last of the handshake."""
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    client, (reader, writer) = ByHand(context), await opened(broker)
    hello = client.hello()
    for first in range(0, len(hello), size):
        writer.write(hello[first : first + size])
        await asyncio.sleep(0.001 if size < 100 else 0.02)
    await client.finish(reader, writer, HEADER)
    async with asyncio.timeout(10):
        assert (await client.read(reader, 3)) == START
    writer.close()


async def test_behind_a_balancer(
    broker: BrokerHouse, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The balancer's header comes before TLS, in one piece with it."""
    monkeypatch.setattr(listener, "balancers", Balancers([ip_network("127.0.0.1")], listener.tasks))
    client, (reader, writer) = ByHand(authority.client()), await opened(broker)
    writer.write(header(0x21, 0x11, addresses("127.0.0.5", 50_000)) + client.hello())
    await client.finish(reader, writer, HEADER)
    assert await client.read(reader, 3) == START
    assert [each.peer for each in listener._connections][-1] == "127.0.0.5:50000"
    writer.close()


async def test_without_a_certificate(broker: BrokerHouse, authority: Authority) -> None:
    """A client that begins with TLS is told at once what is spoken here, and does not wait in a handshake."""
    reader, writer = await opened(broker)
    writer.write(ByHand(authority.client()).hello())
    assert await reader.read() == HEADER
    writer.close()


async def test_a_port_for_tls_alone(broker: BrokerHouse, tls_only: int, authority: Authority) -> None:
    """Closes connections that do not begin with TLS, silently, and logs it; serves those that do."""
    with capture_logs() as logged:
        reader, writer = await opened(broker, tls_only)
        writer.write(HEADER)
        assert await reader.read() == b""
        writer.close()
    assert told_of_peers(logged) == ["a client that does not speak TLS is closed"]
    client = await broker.connect(tls=authority.client(), port=tls_only)
    assert not client.closed


def told_of_peers(logged: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The other services of this process log what befalls them, such as that they stood still for a while."""
    return [line["event"] for line in logged if "peer" in line and line["log_level"] != "debug"]


@pytest.mark.parametrize("spoilt", [b"\x16\x03\x01\x00\x10garbage that is no hello", b"\x16\x03\xff\xff\xff"])
async def test_garbage(broker: BrokerHouse, listener: Any, spoilt: bytes) -> None:
    """Ends in one line of the log, with nothing left."""
    before = set(listener._connections)
    with capture_logs() as logged:
        reader, writer = await opened(broker)
        writer.write(spoilt)
        writer.write_eof()
        async with asyncio.timeout(10):
            await reader.read()
            while set(listener._connections) - before:
                await asyncio.sleep(0.01)
    assert told_of_peers(logged) == ["TLS handshake failed"]
    writer.close()


async def test_a_handshake_that_is_not_gone_on_with(
    broker: BrokerHouse, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends after the time that every client has until its connection is open."""
    short = listener.settings.model_copy(update={"handshake_timeout": 0.2})
    monkeypatch.setattr(listener, "settings", short)
    before = set(listener._connections)
    reader, writer = await opened(broker)
    writer.write(ByHand(authority.client()).hello())
    async with asyncio.timeout(10):
        while await reader.read(1 << 16):
            pass
        while set(listener._connections) - before:
            await asyncio.sleep(0.01)
    writer.close()


async def test_a_client_that_leaves_in_the_handshake(broker: BrokerHouse, listener: Any, authority: Authority) -> None:
    """Is forgotten, whether it ends or resets its socket."""
    before = set(listener._connections)
    for reset in (False, True):
        _, writer = await opened(broker)
        writer.write(ByHand(authority.client()).hello())
        await writer.drain()
        writer.transport.abort() if reset else writer.close()
    async with asyncio.timeout(10):
        while set(listener._connections) - before:
            await asyncio.sleep(0.01)


async def test_old_versions(broker: BrokerHouse, listener: Any, authority: Authority) -> None:
    """TLS 1.1 is not spoken."""
    context = authority.client()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await broker.connect(tls=context)


async def test_clients_with_certificates(
    broker: BrokerHouse, authority: Authority, listener: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where they are needed only clients with one connect; where wanted, also those without, but none of a stranger."""
    signed = authority.sign("client")
    strange = Authority(tmp_path, "Somebody else").sign("client")
    for clients, welcome in (("needed", {signed}), ("wanted", {signed, None})):
        shown = authority.sign("broker", ["localhost"])
        show(listener, monkeypatch, shown, authorities=authority.path, clients=clients)
        for certificate in (signed, None, strange):
            came = await comes_in(broker, authority.client(certificate))
            assert came == (certificate in welcome), (clients, certificate)


async def comes_in(broker: BrokerHouse, context: ssl.SSLContext) -> bool:
    try:
        await broker.connect(tls=context)
    except (ssl.SSLError, ConnectionError, AssertionError):
        return False
    return True


async def test_names(broker: BrokerHouse, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client gets the certificate that has the name it asks for (SNI), with * or without; else the first."""
    first, second = authority.sign("first", ["first.test"]), authority.sign("second", ["second.test", "*.more.test"])
    show(listener, monkeypatch, first, second)
    for asked, shown in (("second.test", second), ("a.more.test", second), ("first.test", first), ("", first)):
        context = authority.client()
        context.check_hostname = False
        _, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0], ssl=context, server_hostname=asked)
        got = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert ssl.DER_cert_to_PEM_cert(got).strip() in shown.read_text(), asked
        writer.close()


async def test_another_certificate_in_its_place(
    broker: BrokerHouse, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is shown to new clients; an unreadable one is logged, and the former stays. No client is disconnected."""
    path = authority.sign("broker", ["localhost"], file="changes.pem")
    now = [0.0]
    monkeypatch.setattr(listener.transports["tls"], "certificates", Certificates(Files((path,)), lambda: now[0]))
    staying = await broker.connect(tls=authority.client())
    seen = [await shown_to_a_client(broker, authority)]
    authority.sign("another", ["localhost"], file="changes.pem")
    now[0] += 2
    seen.append(await shown_to_a_client(broker, authority))
    path.write_text("nonsense")
    now[0] += 2
    with capture_logs() as logged:
        seen.append(await shown_to_a_client(broker, authority))
    assert seen[0] != seen[1] == seen[2]
    assert [line["event"] for line in logged if line["log_level"] == "error"] == ["a certificate cannot be read"]
    await staying.declare("")


async def test_a_bad_certificate_from_the_start(
    broker: BrokerHouse, listener: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The port that names TLS is not opened, says why, and is opened when the file is good; meanwhile others serve."""
    path = tmp_path / "late.pem"
    path.write_text("nonsense")
    told: list[Account] = []

    async def put(records: Any, _deletes: Any) -> None:
        told.extend(Account.model_validate_json(each.value) for each in records)

    for module, name in (("transport.certificates", "_EVERY"), ("connections.ports", "_LOOK")):
        monkeypatch.setattr(f"services.gateway.{module}.{name}", 0.02)
    of_settings = [Port(name="amqps", host="127.0.0.1", port=free_port(), transports=("tls",))]
    monkeypatch.setattr(listener, "_of_settings", lambda: of_settings)
    with capture_logs() as logged:
        show(listener, monkeypatch, path)
        await listener.start()
        assert "amqps" not in listener.entrances
        assert (await broker.connect()).of(commands.Connection.OpenOk)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await broker.connect(tls=authority.client())
        ports = Ports(listener, "gateway-0", put)
        ports.start(_nothing())
        await until(lambda: bool(told) and len(told[-1].served) == 2)
        amqp, amqps = told[-1].served
        signed = authority.sign("broker", ["localhost"])
        path.write_bytes(signed.read_bytes())
        await until(lambda: "amqps" in listener.entrances)
    assert (await broker.connect(port=of_settings[0].port, tls=authority.client())).of(commands.Connection.OpenOk)
    await until(lambda: told[-1].served[-1].at != ())
    await ports.stop()
    listener.entrances.pop("amqps").close()
    listener.unopened.clear()
    why = f"{path}: there is no certificate, or no key, in it, in PEM; there is no TLS until it can be read"
    assert (amqp.port.name, bool(amqp.at), amqp.trouble, amqp.amiss) == ("amqp", True, "", why)
    assert (amqps.port.name, amqps.at, amqps.trouble) == ("amqps", (), why)
    [line] = [line for line in logged if line["event"] == "a port cannot be opened"]
    assert (line["port"], line["reason"], "the reason" in line["do"]) == ("amqps", why, True)


async def _nothing() -> AsyncIterator[Records]:
    await asyncio.Event().wait()
    yield Records()


async def shown_to_a_client(broker: BrokerHouse, authority: Authority) -> bytes:
    client = await broker.connect(tls=authority.client())
    shown: bytes = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return shown


async def test_goodbye(broker: BrokerHouse, listener: Any, authority: Authority) -> None:
    """Connection.close-ok arrives before the end of the stream, which is said as TLS says it."""
    client = await broker.connect(tls=authority.client())
    await client.call(0, commands.Connection.Close(200, "", 0, 0), commands.Connection.CloseOk)
    await client.until(lambda: client.closed)
