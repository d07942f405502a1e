"""Both ends of gRPC streams of bytes: ours, and grpc.aio's, to compare with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.common.streams.server import StreamServer
from services.common.streams.stream import Stream

METHOD = "/test.Bytes/Talk"
SIZES = [0, 1, 16 << 10, 1 << 20, 20 << 20, 5]
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Serve = Callable[[AsyncIterator[bytes], Any], Any]


def bodies() -> list[bytes]:
    """Messages of many sizes, no two alike."""
    return [bytes((number,)) * size for number, size in enumerate(SIZES)]


def same(some: list[bytes], others: list[bytes]) -> bool:
    """Bodies that are compared without printing 20 MiB where they differ."""
    return some == others


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits for what others bring about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


class Heard:
    """A listener that keeps all it hears, and sends it back if it is to."""

    def __init__(self, stream: Stream | None = None, *, echo: bool = False) -> None:
        self.stream = stream
        self.messages: list[bytes] = []
        self.reasons: list[str] = []
        self.told_writable = 0
        self._echo = echo

    def received(self, message: bytes) -> None:
        self.messages.append(message)
        if self._echo and self.stream:
            self.stream.write(message)

    def writable(self) -> None:
        self.told_writable += 1

    def ended(self, reason: str) -> None:
        self.reasons.append(reason)


class Served:
    """A StreamServer, and the listener of each stream that was opened to METHOD."""

    def __init__(self, address: str, create: Callable[[Stream], Any] | None = None) -> None:
        self.server = StreamServer(address, ["test.Bytes"])
        self.heard: list[Any] = []
        self._create = create or (lambda stream: Heard(stream, echo=True))
        self.server.add_stream(METHOD, self._accept)

    def _accept(self, stream: Stream) -> Any:
        self.heard.append(self._create(stream))
        return self.heard[-1]

    @property
    def address(self) -> str:
        """Where it listens."""
        if self.server.address.startswith("unix:"):
            return self.server.address
        assert self.server._server
        return f"127.0.0.1:{self.server._server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def serving(address: str, create: Callable[[Stream], Any] | None = None) -> AsyncIterator[Served]:
    """Our server, ready."""
    served = Served(address, create)
    await served.server.listen()
    await served.server.ready()
    try:
        yield served
    finally:
        await served.server.stop(0)


@asynccontextmanager
async def grpc_serving(address: str, serve: Serve) -> AsyncIterator[str]:
    """A server of grpc.aio, whose METHOD is `serve`; gives its address."""
    server = grpc.aio.server(options=UNLIMITED)
    handlers = {"Talk": grpc.stream_stream_rpc_method_handler(serve)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Bytes", handlers),))
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield address if address.startswith("unix:") else f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


@asynccontextmanager
async def grpc_call(address: str, method: str = METHOD, **more: Any) -> AsyncIterator[Any]:
    """A stream that a client of grpc.aio opens."""
    # Its own connection: else it may be one to a former server there, whose end gRPC's runtime has not heard of yet.
    options = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        call = channel.stream_stream(method)(**more)
        yield call
        call.cancel()


async def opened(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A plain socket."""
    if address.startswith("unix:"):
        return await asyncio.open_unix_connection(address.removeprefix("unix:"))
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def echo(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
    """Serves by sending everything back."""
    async for request in requests:
        yield request


async def within(work: Awaitable[Any], seconds: float = 60) -> Any:
    """What it gives, or the test fails."""
    return await asyncio.wait_for(work, seconds)
