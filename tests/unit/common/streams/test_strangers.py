"""Peers at our port that speak something else."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from services.common import secret
from services.common.http2.events import Event, Headers, Ready, Reset
from services.common.streams import client as module
from services.common.streams.client import connect
from tests.support.http2_transcript import GOAWAY, PING, PREFACE, REQUEST, client, frame, read, settings
from tests.support.stream_ends import METHOD, Heard, opened, serving, until, within

_BROKEN = "the peer broke the rules of HTTP/2; its connection ends"


def _tls_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="hopline")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\nHost: hopline\r\n\r\n", _tls_hello(), b"AMQP\0\0\x09\x01", PREFACE + b"x" * 100],
    ids=["HTTP/1.1", "TLS", "AMQP", "no frames"],
)
async def test_a_stranger_is_told_and_left(address: str, data: bytes) -> None:
    """The connection ends with a GOAWAY, the log says why in one line, and others' streams go on."""
    heard = Heard()
    async with serving(address) as served:
        stream = await connect(served.address, METHOD, heard)
        with capture_logs() as lines:
            reader, writer = await opened(served.address)
            writer.write(data)
            *_, last = read(await within(reader.read()))
            writer.close()
        stream.write(b"x")
        await until(lambda: heard.messages)
        stream.close()
    assert last.kind == GOAWAY
    assert [(line["event"], line["log_level"]) for line in lines] == [(_BROKEN, "warning")]
    assert heard.reasons == []


async def test_many_strangers_are_a_few_lines(address: str) -> None:
    """A peer may break the rules of HTTP/2 any number of times."""
    with capture_logs() as lines:
        async with serving(address) as served:
            for _ in range(70):
                reader, writer = await opened(served.address)
                writer.write(b"AMQP" * 10)
                await within(reader.read())
                writer.close()
    assert len(lines) == 50


async def test_a_silent_visitor(address: str) -> None:
    """Or leaves in the middle of a word is no event."""
    with capture_logs() as lines:
        async with serving(address) as served:
            for data in (b"", b"PRI", PREFACE, PREFACE + settings() + frame(0, 0, 1)[:5]):
                _, writer = await opened(served.address)
                writer.write(data)
                await until(lambda: served.server._endpoints)
                writer.close()
                await until(lambda: not served.server._endpoints)
    assert lines == []


async def test_a_request_that_is_no_call(address: str) -> None:
    """A browser that speaks HTTP/2 is answered 415, and its connection goes on."""
    async with serving(address) as served:
        one = client()
        reader, writer = await opened(served.address)
        one.connection.request(REQUEST)
        writer.write(one.raw())
        events: list[Event] = []
        while len(events) < 3:
            events += one.peer(await within(reader.read(1000)))
        writer.write(frame(PING, 0, 0, bytes(8)))
        assert read(one.raw() + await within(reader.readexactly(17)))[-1].kind == PING
        writer.close()
    assert events == [Ready(), Headers(1, [(":status", "415"), ("content-length", "0")], True), Reset(1, 0, "")]


@pytest.fixture
def _a_stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clients of the test do not say the secret that servers want to hear."""
    secret.use("0" * 32)
    monkeypatch.setattr(module, "fields_for", lambda _address: ())
    yield
    secret.use("")


@pytest.mark.usefixtures("_a_stranger")
@pytest.mark.parametrize(
    "requests",
    [[b"", b""], [b"", bytes(5000)], [bytes(5000)], [bytes(20 << 20)], [b"", *[bytes(20 << 20)] * 4]],
    ids=["two", "a large one more", "a large one", "one of many frames", "many"],
)
async def test_a_health_check_takes_one_small_request(requests: list[bytes]) -> None:
    """A caller of it without the secret leaves nothing that waits, and no internal error."""
    heard = Heard()
    with capture_logs() as lines:
        async with serving("127.0.0.1:0") as served:
            stream = await connect(served.address, "/grpc.health.v1.Health/Watch", heard)
            for request in requests:
                stream.write(request)
            await until(lambda: heard.reasons)
            assert not any(endpoint._streams for endpoint in served.server._endpoints)
            await until(lambda: not served.server.tasks._tasks)
    assert heard.reasons != [""]
    assert lines == []
