"""Whether a peer on another machine lives: it is asked when it was quiet."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from structlog.testing import capture_logs

from services.common.http2.connection import Http2Connection
from services.common.streams import endpoint
from services.common.streams.call_server import Served
from services.common.streams.client import _Client, connect
from services.common.streams.endpoint import Endpoint
from tests.support.http2_transcript import ACK, PING, PREFACE, frame, settings
from tests.support.stream_ends import METHOD, Heard, echo, grpc_serving, serving, until

_TCP = "127.0.0.1:0"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked after very little."""
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(0.01, 0.5))


class _Peer(asyncio.Protocol):
    """A server that says its SETTINGS, counts pings, and answers so many of them."""

    def __init__(self, answers: int) -> None:
        self.pings = 0
        self._answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport
        transport.write(settings())

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(frame(PING, 0, 0, bytes(8)))):
            self.pings += 1
            if self.pings <= self._answers:
                self.transport.write(frame(PING, ACK, 0, bytes(8)))


async def test_a_peer_that_answers_no_more_is_given_up() -> None:
    """Its streams end and say so; as long as it answered they did not."""
    peer, heard = _Peer(2), Heard()
    listening = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
    with capture_logs() as lines:
        stream = await connect(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", METHOD, heard)
        await until(lambda: peer.pings >= 2)
        assert heard.reasons == []
        await until(lambda: heard.reasons)
    stream.close()
    listening.close()
    await listening.wait_closed()
    assert peer.pings == 3
    assert heard.reasons == ["the peer does not answer"]
    assert [line["event"] for line in lines] == ["the peer does not answer; its connection ends"]


async def test_a_peer_that_answers_is_asked_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one silence, however long its answer might have taken: if its machine goes next, that is found out."""
    looks, look = list[Endpoint](), Endpoint._look

    def counted(self: Endpoint) -> None:
        looks.append(self)
        look(self)

    monkeypatch.setattr(Endpoint, "_look", counted)
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(0.05, 3600.0))
    peer = _Peer(1000)
    listening = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
    stream = await connect(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", METHOD, Heard())
    await until(lambda: peer.pings >= 12)
    stream.close()
    listening.close()
    await listening.wait_closed()
    assert len(looks) <= peer.pings + 2  # the first ones hear of its SETTINGS; with two silences for each: 24


async def test_a_client_that_answers_no_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the server too."""
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(0.01, 0.01))
    with capture_logs() as lines:
        async with serving(_TCP) as served:
            host, _, port = served.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(PREFACE + settings())
            assert (await asyncio.wait_for(reader.read(), 60)).count(frame(PING, 0, 0, bytes(8))) == 1
            writer.close()
            await until(lambda: not served.server._endpoints)
    assert [line["event"] for line in lines] == ["the peer does not answer; its connection ends"]


async def test_an_answer_that_was_not_read_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts: this process itself stood still, and looks at what has come before it gives a peer up."""
    pings, heard, ping = list[Http2Connection](), Heard(), Http2Connection.ping
    ours, wakes = socket.socketpair()

    def stand() -> None:
        ours.recv(1)
        peer.sendall(frame(PING, ACK, 0, bytes(8)))
        time.sleep(0.2)  # longer than the answer may take

    def asks(connection: Http2Connection) -> None:
        ping(connection)
        pings.append(connection)
        if len(pings) == 1:
            wakes.send(b"x")

    monkeypatch.setattr(Http2Connection, "ping", asks)
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(0.01, 0.1))
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, stand)
    with ours, wakes, socket.create_server(("127.0.0.1", 0)) as listening:
        opening = asyncio.ensure_future(connect(f"127.0.0.1:{listening.getsockname()[1]}", METHOD, heard))
        peer, _ = await asyncio.to_thread(listening.accept)
        with peer:
            peer.sendall(settings())
            stream = await opening
            await until(lambda: len(pings) > 1 or heard.reasons)
            assert len(pings) > 1
            stream.close()
        loop.remove_reader(ours)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Http2Connection]:
    """Which end has sent a ping, each time."""
    pings: list[Http2Connection] = []
    ping = Http2Connection.ping

    def counted(connection: Http2Connection) -> None:
        pings.append(connection)
        ping(connection)

    monkeypatch.setattr(Http2Connection, "ping", counted)
    return pings


@pytest.mark.parametrize("quiet", [Served, _Client], ids=["the client asks", "the server asks"])
async def test_two_of_ours_keep_each_other(
    quiet: type[endpoint.Endpoint], asked: list[Http2Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both answer pings, and messages go through afterwards. Where both would ask, the first keeps the other quiet."""
    monkeypatch.setattr(quiet, "_look", lambda _self: None)
    heard = Heard()
    async with serving(_TCP) as served:
        stream = await connect(served.address, METHOD, heard)
        await until(lambda: len(asked) >= 4)
        assert len(set(asked)) == 1
        stream.write(b"x")
        await until(lambda: heard.messages)
        assert heard.reasons == []
        stream.close()


async def test_a_peer_that_speaks_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any frame shows that it is alive."""
    peer, heard = _Peer(0), Heard()
    listening = await asyncio.get_running_loop().create_server(lambda: peer, "127.0.0.1", 0)
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(3600.0, 0.5))
    stream = await connect(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", METHOD, heard)
    client = stream._client
    for _ in range(5):
        peer.transport.write(settings())
        await until(lambda: not client._silent)
        assert client._keepalive
        client._keepalive.cancel()
        client._look()
    assert peer.pings == 0
    stream.close()
    listening.close()
    await listening.wait_closed()


async def test_a_peer_on_this_machine_is_never_asked(unix: str) -> None:
    """Of a unix socket the kernel says when it ends: two idle processes are not woken."""
    heard = Heard()
    async with serving(unix) as served:
        stream = await connect(unix, METHOD, heard)
        stream.write(b"x")
        await until(lambda: heard.messages)
        assert stream._client._keepalive is None
        assert [each._keepalive for each in served.server._endpoints] == [None]
        stream.close()


async def test_a_server_of_grpc_answers(asked: list[Http2Connection]) -> None:
    """Its answer keeps the stream."""
    heard = Heard()
    async with grpc_serving(_TCP, echo) as target:
        stream = await connect(target, METHOD, heard)
        await until(lambda: len(asked) >= 2)
        stream.write(b"x")
        await until(lambda: heard.messages)
        stream.close()
    assert heard.reasons == []
