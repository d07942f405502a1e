"""AMQP over WebSocket, at the same port, with TLS and without."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from pamqp import commands
from structlog.testing import capture_logs
from wsproto.events import Ping, TextMessage

from services.gateway.transport.certificates import Certificates, Files
from tests.support.amqp_playbook import HEADER
from tests.support.broker_house import BrokerHouse
from tests.support.certificates import Authority
from tests.support.websocket_client import Refused, WebSocketStreams

PAGE = "https://shop.example"


@pytest.fixture
def listener(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of the first gateway, where pages of one origin may open a WebSocket for this test."""
    listener = broker.gateways[0]._listener
    monkeypatch.setattr(listener.transports["websocket"], "origins", (PAGE,))
    return listener


async def opened(broker: BrokerHouse, **options: Any) -> WebSocketStreams:
    return await WebSocketStreams.open(broker.ports[0], **options)


async def gone(listener: Any, before: set[Any]) -> None:
    async with asyncio.timeout(10):
        while set(listener._connections) - before:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("piece", [0, 1, 1000])
async def test_messages_begin_and_end_anywhere(broker: BrokerHouse, listener: Any, name: str, piece: int) -> None:
    """Frames of the one are not frames of the other: what is published in pieces arrives whole, there and back."""
    streams = await opened(broker, piece=piece, origin=PAGE)
    client = await broker.connect(streams=streams)
    plain = await broker.connect()
    await client.declare(name)
    bodies = [os.urandom(size) for size in (0, 1, 125, 126, 70_000 if piece != 1 else 200)]
    for body in bodies:
        client.publish(body, name)
    await plain.consume(name)
    assert await plain.bodies(5) == bodies
    await client.declare(f"{name}-back")
    await client.consume(f"{name}-back")
    for body in bodies:
        plain.publish(body, f"{name}-back")
    assert await client.bodies(5) == bodies


async def test_over_tls(
    broker: BrokerHouse, listener: Any, name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, encrypted."""
    authority = Authority(tmp_path)
    shown = Certificates(Files((authority.sign("broker", ["localhost"]),)))
    monkeypatch.setattr(listener.transports["tls"], "certificates", shown)
    client = await broker.connect(streams=await opened(broker, tls=authority.client()))
    await client.declare(name)
    client.publish(b"x" * (1 << 20), name)
    await client.consume(name)
    assert await client.bodies(1) == [b"x" * (1 << 20)]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"subprotocols": ()}, 400),
        ({"subprotocols": ("mqtt",)}, 400),
    ],
)
async def test_clients_that_are_not_served(
    broker: BrokerHouse, listener: Any, options: dict[str, Any], status: int
) -> None:
    """Pages of other origins, and clients of other subprotocols; the log says why."""
    before = set(listener._connections)
    with capture_logs() as logged, pytest.raises(Refused) as refused:
        await opened(broker, **options)
    assert refused.value.status == status
    assert "a WebSocket is refused" in [line["event"] for line in logged]
    await gone(listener, before)


async def test_where_no_page_may(broker: BrokerHouse) -> None:
    """A gateway that names no origins speaks AMQP alone, to a page that asks too."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0])
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n")
    assert await reader.read() == HEADER
    writer.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET \0\0\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    ],
)
async def test_requests_that_are_none(broker: BrokerHouse, listener: Any, request_: bytes) -> None:
    """Are answered as HTTP has it, with a status, and closed."""
    before = set(listener._connections)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0])
    writer.write(request_)
    async with asyncio.timeout(10):
        assert (await reader.read()).startswith(b"HTTP/1.1 4")
    writer.close()
    await gone(listener, before)


async def test_frames_that_are_none(broker: BrokerHouse, listener: Any) -> None:
    """A frame that is not masked, or of an unknown kind, ends the connection with a code (section 7.4.1)."""
    for garbage, code in ((b"\x82\x05hello", 1002), (b"\x8f\x80\0\0\0\0", 1002), (b"\xf2\x80\0\0\0\0", 1002)):
        before = set(listener._connections)
        streams = await opened(broker)
        streams.raw(garbage)
        await gone(listener, before)
        async with asyncio.timeout(5):
            assert await streams.reader.read() == b""
        assert streams.close_code == code
        streams.close()


async def test_text(broker: BrokerHouse, listener: Any) -> None:
    """AMQP is binary: a text message is data that cannot be accepted (1003)."""
    streams = await opened(broker)
    streams.send(TextMessage("AMQP"))
    async with asyncio.timeout(5):
        assert await streams.reader.read() == b""
    assert streams.close_code == 1003
    streams.close()


async def test_pings(broker: BrokerHouse, listener: Any) -> None:
    """Are answered, in the middle of a message too; a client that sends millions and reads nothing costs no memory."""
    streams = await opened(broker)
    client = await broker.connect(streams=streams)
    streams.send(Ping(b"there?"))
    await client.declare("")
    assert streams.pongs == [b"there?"]
    flood = await opened(broker)
    await broker.connect(streams=flood)  # a stranger has ten seconds, which a busy machine may take
    flood._task.cancel()
    ping = flood.frames.send(Ping(b"x" * 125))
    for _ in range(400):
        flood.raw(ping * 500)
        await asyncio.wait_for(flood.drain(), 10)
    [*_, connection] = listener._connections
    assert connection._transport.get_write_buffer_size() < 1 << 20
    flood.transport.abort()


async def test_goodbye(broker: BrokerHouse, listener: Any) -> None:
    """Connection.close-ok comes before the close frame, which says that all is well."""
    before = set(listener._connections)
    streams = await opened(broker)
    client = await broker.connect(streams=streams)
    await client.call(0, commands.Connection.Close(200, "", 0, 0), commands.Connection.CloseOk)
    await client.until(lambda: client.closed)
    assert streams.close_code == 1000
    await gone(listener, before)
