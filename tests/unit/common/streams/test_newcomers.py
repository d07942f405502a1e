"""Peers at a port of the stack that have not said its secret: how many, how long, and what they may hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import grpc
import pytest
from structlog.testing import capture_logs

from services.common import secret
from services.common.streams import call_server, endpoint, newcomers
from services.common.streams import client as client_module
from services.common.streams.client import connect
from services.common.streams.newcomers import CALLS, Newcomers, most_of
from tests.support.http2_transcript import (
    DATA,
    GOAWAY,
    PREFACE,
    REQUEST,
    RST_STREAM,
    Transcript,
    client,
    frame,
    read,
    settings,
)
from tests.support.stream_ends import METHOD, Heard, Served, opened, serving, until, within

_TCP = "127.0.0.1:0"
_WATCH = "/grpc.health.v1.Health/Watch"
_MOST = 3


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """Servers want to hear a secret."""
    secret.use("0" * 32)
    yield
    secret.use("")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is closed because the machine is busy."""
    monkeypatch.setattr(endpoint, "USUAL", endpoint.Doubt(3600, 3600))
    monkeypatch.setattr(call_server, "SECONDS", 3600)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places for few."""
    monkeypatch.setattr(call_server, "most_of", lambda _files: _MOST)


class _Peer:
    """A connection."""

    def __init__(self) -> None:
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True


def _came(of: Newcomers, *places: str) -> list[_Peer]:
    peers = [_Peer() for _ in places]
    for peer, place in zip(peers, places, strict=True):
        of.come(peer, place)
    return peers


def _cut(peers: list[_Peer]) -> list[int]:
    return [number for number, peer in enumerate(peers) if peer.is_cut_off]


async def test_who_makes_room() -> None:
    """Of the address that has most, who came first; one that has said the secret, or has left, counts no more."""
    of = Newcomers(4)
    peers = _came(of, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3")
    assert _cut(peers) == []
    peers += _came(of, "10.0.0.4")
    assert _cut(peers) == [1]
    of.leave(peers[0])
    of.leave(peers[0])
    peers += _came(of, "10.0.0.2")
    assert (_cut(peers), of.count) == ([1], 4)


async def test_a_network_of_ipv6_is_one_address() -> None:
    """Who has one can choose among its addresses at will."""
    of = Newcomers(2)
    assert _cut(_came(of, "10.0.0.1", "2001:db8::1", "2001:db8::2")) == [1]


async def test_what_they_hold() -> None:
    """Beyond the budget those are closed whose address holds most, until it is kept to."""
    of = Newcomers(100, octets=1000)
    peers = _came(of, "10.0.0.1", "10.0.0.2", "10.0.0.2")
    for peer, size in zip(peers, (400, 250, 350), strict=True):
        of.hold(peer, size)
    of.hold(peers[0], 390)
    assert _cut(peers) == []
    of.hold(peers[0], 401)
    assert _cut(peers) == [1]
    of.hold(peers[0], 2000)
    of.hold(peers[0], 2000)
    assert _cut(peers) == [0, 1]


def test_how_many() -> None:
    """No more than a share of the files that a process may have open, and never none."""
    assert [most_of(files) for files in (1, 1024, 1 << 20)] == [1, 64, 256]


@pytest.mark.usefixtures("few")
async def test_a_crowd_keeps_no_member_out() -> None:
    """Those that are in go on, and one that comes finds a place, though all come from one address."""
    first, second = Heard(), Heard()
    with capture_logs() as lines:
        async with serving(_TCP) as served:
            stream = await connect(served.address, METHOD, first)
            await until(lambda: served.heard)
            crowd = [await opened(served.address) for _ in range(10)]
            for reader, _ in crowd[:-_MOST]:
                await within(_end_of(reader))
            assert len(served.server._endpoints) == 1 + _MOST
            other = await connect(served.address, METHOD, second)
            for each, heard in ((stream, first), (other, second)):
                each.write(b"x")
                await until(lambda heard=heard: heard.messages)
                each.close()
            for _, writer in crowd:
                writer.close()
    assert (first.reasons, second.reasons) == ([], [])
    assert [(line["log_level"], line["limit"]) for line in lines] == [("warning", _MOST)]


async def _end_of(reader: asyncio.StreamReader) -> None:
    try:
        await reader.read()
    except ConnectionResetError:
        return


@pytest.mark.parametrize("said", [b"", PREFACE[:7], PREFACE + settings()], ids=["nothing", "half", "no call"])
async def test_who_says_no_secret_is_left(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """After some seconds it is told why, and closed, whatever it has said but the secret."""
    monkeypatch.setattr(call_server, "SECONDS", 0.05)
    async with serving(_TCP) as served:
        reader, writer = await opened(served.address)
        writer.write(said)
        *_, last = read(await within(reader.read()))
        writer.close()
        await until(lambda: not served.server._endpoints)
    assert last.kind == GOAWAY
    assert b"HOPLINE_SECRET_FILE" in last.payload


async def test_a_member_may_be_quiet() -> None:
    """Who has said the secret once is asked nothing more; over a unix socket nobody is."""
    async with serving(_TCP) as served:
        stream = await connect(served.address, METHOD, Heard())
        await until(lambda: served.heard)
        [endpoint] = served.server._endpoints
        assert served.server.newcomers is not None
        assert served.server.newcomers.count == 0
        assert endpoint._late is None
        stream.close()


async def test_unix(unix: str) -> None:
    """The folder's mode keeps others out."""
    async with serving(unix) as served:
        assert served.server.newcomers is None


async def test_who_leaves_takes_no_place() -> None:
    """Nothing of it is kept."""
    async with serving(_TCP) as served:
        _, writer = await opened(served.address)
        await until(lambda: served.server._endpoints)
        writer.close()
        await until(lambda: not served.server._endpoints)
        assert served.server.newcomers is not None
        assert served.server.newcomers.count == 0


async def test_large_frames_of_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large frames that are not finished are bounded, all of them together, and by it no member is closed."""
    monkeypatch.setattr(newcomers, "OCTETS", 3 << 20)
    monkeypatch.setattr(call_server, "Newcomers", lambda most: Newcomers(most, newcomers.OCTETS))
    heard = Heard()
    async with serving(_TCP) as served:
        stream = await connect(served.address, METHOD, heard)
        part = frame(DATA, 0, 1, bytes(4 << 20))[: 1 << 20]
        peers = [await _stranger(served, part) for _ in range(8)]
        await until(lambda: len(served.server._endpoints) < 1 + len(peers))
        assert served.server.newcomers is not None
        assert served.server.newcomers._total <= newcomers.OCTETS
        stream.write(bytes(1 << 20))
        await until(lambda: heard.messages)
        stream.close()
        for writer in peers:
            writer.close()


async def _stranger(served: Served, data: bytes) -> asyncio.StreamWriter:
    one: Transcript = client()
    one.connection.request(REQUEST)
    _, writer = await opened(served.address)
    writer.write(one.raw() + data)
    return writer


async def test_a_stranger_that_does_not_read() -> None:
    """It is closed as soon as something waits for it; a member may take its time."""
    async with serving(_TCP) as served:
        stream = await connect(served.address, METHOD, Heard())
        await until(lambda: served.heard)
        [member] = served.server._endpoints
        reader, writer = await opened(served.address)
        await until(lambda: len(served.server._endpoints) == 2)
        for endpoint in list(served.server._endpoints):
            endpoint.pause_writing()
        await within(_end_of(reader))
        await until(lambda: list(served.server._endpoints) == [member])
        member.resume_writing()
        stream.close()
        writer.close()


async def test_calls_of_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Health checks that last may be few on a connection; those of a member, as many as it likes."""
    for fields, more in (((), grpc.StatusCode.RESOURCE_EXHAUSTED), (secret.fields_for(_TCP), None)):
        monkeypatch.setattr(client_module, "fields_for", lambda _address, fields=fields: fields)
        heard = [Heard() for _ in range(CALLS + 1)]
        async with serving(_TCP) as served:
            stream = await connect(served.address, _WATCH, heard[0])
            streams = [stream._client.open(_WATCH, each) for each in heard[1:]]
            for each in (stream, *streams):
                each.write(b"")
            await until(lambda heard=heard: all(each.messages or each.reasons for each in heard))
            stream.close()
        refused = [each.reasons[0].partition(":")[0] for each in heard if not each.messages]
        assert refused == ([more.name] if more else [])


async def test_a_call_that_is_refused_says_no_secret() -> None:
    """A stranger stays one whatever it calls; RST_STREAM of it makes none."""
    async with serving(_TCP) as served:
        writer = await _stranger(served, frame(RST_STREAM, 0, 1, bytes(4)))
        await until(lambda: served.server.newcomers is not None and served.server.newcomers.count == 1)
        writer.close()
