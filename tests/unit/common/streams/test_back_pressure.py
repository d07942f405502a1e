"""A peer that stops reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.streams import endpoint
from services.common.streams.client import ClientStream, connect
from services.common.streams.endpoint import USUAL
from services.common.streams.stream import Stream
from tests.support.http2_transcript import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    Transcript,
    client,
    frame,
    grow,
    messages,
    settings,
)
from tests.support.stream_ends import METHOD, Heard, grpc_call, grpc_serving, opened, serving, until, within

_SIZE = 100_000
_COUNT = 400


class _Writes(Heard):
    """As much as the peer takes, until all is written."""

    def __init__(self, stream: Stream | ClientStream | None = None) -> None:
        super().__init__()
        self.out: Any = stream
        self.written = 0

    def received(self, message: bytes) -> None:
        super().received(message)
        asyncio.get_running_loop().call_soon(self.writable)

    def writable(self) -> None:
        super().writable()
        while self.written < _COUNT and not self.out.full:
            self.out.write(_body(self.written))
            self.written += 1


def _body(number: int) -> bytes:
    return number.to_bytes(4, "big") * (_SIZE // 4)


def _held(stream: Any) -> int:
    """Octets that our end keeps."""
    end = stream._client if isinstance(stream, ClientStream) else stream._endpoint
    return int(end._connection.unsent + end._transport.get_write_buffer_size())


async def test_a_server_of_grpc_that_does_not_read(address: str) -> None:
    """Finds the stream full after what it may take; what is kept is one message; then all arrives in order."""
    reading = asyncio.Event()
    there = Heard()

    async def serve(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        yield b"ready"
        await reading.wait()
        async for request in requests:
            there.received(request)

    heard = _Writes()
    async with grpc_serving(address, serve) as target:
        heard.out = stream = await connect(target, METHOD, heard)
        await until(lambda: stream.full)
        assert heard.written < _COUNT
        assert _held(stream) <= (1 << 20) + 2 * _SIZE
        reading.set()
        await until(lambda: len(there.messages) == _COUNT)
        stream.close()
    assert all(body == _body(number) for number, body in enumerate(there.messages))


async def test_a_client_of_grpc_that_does_not_read(address: str) -> None:
    """The same the other way."""
    async with serving(address, _Writes) as served, grpc_call(served.address) as call:
        await call.write(b"begin")
        await until(lambda: served.heard and served.heard[0].written and served.heard[0].out.full)
        [writer] = served.heard
        assert writer.written < _COUNT
        assert _held(writer.out) <= (1 << 20) + 2 * _SIZE
        for number in range(_COUNT):
            assert (await within(call.read()) == _body(number)) is True
    assert writer.told_writable


async def _raw(address: str, window: int, *streams: int) -> tuple[Transcript, Any, Any]:
    """A client that says no more than it is made to, and has opened these streams."""
    one = client()
    one.raw()
    fields = [(":method", "POST"), (":path", METHOD), ("content-type", "application/grpc")]
    reader, writer = await opened(address)
    writer.write(PREFACE + settings(initial_window_size=window) + grow(0, 1 << 30))
    for number in streams:
        one.connection.request(fields)
        writer.write(frame(HEADERS, END_HEADERS, number, one.block(fields)))
    return one, reader, writer


async def test_a_socket_that_is_not_read(address: str) -> None:
    """Windows are wide open, but the kernel takes no more: the stream is full, and goes on when it does."""
    async with serving(address, _Writes) as served:
        one, reader, writer = await _raw(served.address, 1 << 30, 1)
        writer.transport.pause_reading()
        writer.write(frame(DATA, 0, 1, messages(b"begin")))
        await until(lambda: served.heard and served.heard[0].out.full)
        [listener] = served.heard
        assert listener.written < _COUNT
        assert _held(listener.out) <= (1 << 20) + 2 * _SIZE
        writer.transport.resume_reading()
        come: list[Any] = []
        while len(come) < _COUNT:
            events = one.peer(await within(reader.read(1 << 20)))
            come += [event.data for event in events if type(event).__name__ == "Message"]
        writer.close()
    assert all(body == _body(number) for number, body in enumerate(come))


async def test_a_full_socket_is_closed_at_once(address: str) -> None:
    """A peer that takes nothing does not keep a server that stops."""
    served_by: list[Any] = []
    async with serving(address, _Writes) as served:
        _, _, writer = await _raw(served.address, 1 << 30, 1)
        writer.transport.pause_reading()
        writer.write(frame(DATA, 0, 1, messages(b"begin")))
        await until(lambda: served.heard and served.heard[0].out.full)
        await within(served.server.stop(0))
        await until(lambda: not served.server._endpoints)
        served_by += served.heard
        writer.close()
    assert served_by[0].reasons == ["the service stops"]


@pytest.mark.parametrize("asks", [True, False])
async def test_each_stream_that_was_full_is_told(address: str, asks: bool) -> None:
    """Also when there is room and another stream of the connection asks for it first."""

    class Writes(Heard):
        def received(self, message: bytes) -> None:
            super().received(message)
            assert self.stream
            if message == b"write":
                self.stream.write(b"x" * 1000)
            if message != b"listen":
                self.full = self.stream.full

    async with serving(address, Writes) as served:
        _, _, writer = await _raw(served.address, 10, 1, 3)
        writer.write(frame(DATA, 0, 1, messages(b"write")))
        await until(lambda: len(served.heard) == 2 and served.heard[0].messages)
        first, second = served.heard
        assert first.full
        writer.write(grow(1, 10_000) + frame(DATA, 0, 3, messages(b"ask" if asks else b"listen")))
        await until(lambda: second.messages)
        assert not asks or not second.full
        await until(lambda: first.told_writable)
        assert first.told_writable == 1
        writer.close()


async def test_trailers_of_a_client_end_its_stream(address: str) -> None:
    """gRPC's clients send none, but HTTP/2 has them; the listener hears that the peer has said everything."""
    async with serving(address) as served:
        one, _, writer = await _raw(served.address, 1000, 1)
        writer.write(frame(HEADERS, END_HEADERS | END_STREAM, 1, one.block([("x", "y")])))
        await until(lambda: served.heard and served.heard[0].reasons)
        writer.close()
    assert served.heard[0].reasons == [""]


async def test_a_peer_that_asks_and_reads_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends before the answers fill the memory, and others' streams go on (RFC 9113 section 10.5)."""
    patient = USUAL._replace(untaken=600.0)  # else the kernel may end it first, on a busy machine
    monkeypatch.setattr(endpoint, "USUAL", patient)
    heard = Heard()
    async with serving(address) as served:
        stream = await connect(served.address, METHOD, heard)
        _, writer = await opened(served.address)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: len(served.server._endpoints) == 2)
        writer.write(PREFACE + settings())
        with capture_logs() as lines:
            while not writer.is_closing() and not lines:
                writer.write(frame(PING, 0, 0, bytes(8)) * 500)
                await asyncio.sleep(0.001)
        await until(lambda: len(served.server._endpoints) == 1)
        stream.write(b"x")
        await until(lambda: heard.messages)
        stream.close()
        writer.transport.abort()
    assert [(line["log_level"], "ENHANCE_YOUR_CALM" in line["reason"]) for line in lines] == [("warning", True)]
