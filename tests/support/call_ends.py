"""Both ends of gRPC calls: ours and grpc.aio's, in every pairing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
import grpc.aio

from services.common.streams.call_server import CallServer
from services.common.streams.channel import Channel
from tests.support.stream_ends import UNLIMITED

KINDS = ["unary_unary", "unary_stream", "stream_unary", "stream_stream"]
PIECE, PIECES = bytes(64 << 10), 1000
SAME_WINDOW = [("grpc.http2.bdp_probe", 0)]  # however slowly it is answered


class Ends(NamedTuple):
    """Which of the two is ours."""

    client: bool
    server: bool

    def channel(self, address: str) -> Any:
        """To the server."""
        return Channel(address) if self.client else grpc.aio.insecure_channel(address, options=UNLIMITED)


class Servicer:
    """A method of each kind sends back what it hears; others wait, fail, or say much."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go_on = asyncio.Event()
        self.said: Any = None
        self.wrote = 0

    async def unary_unary(self, request: bytes, context: Any) -> bytes:
        self.said = context.invocation_metadata()
        return request

    async def unary_stream(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield request

    async def stream_unary(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        return b"".join([request async for request in requests])

    async def stream_stream(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    async def reads(self, _requests: object, context: Any) -> None:
        """As a servicer that reads and writes itself."""
        while (request := await context.read()) is not grpc.aio.EOF:
            await context.write(request)

    async def listens(self, _requests: object, context: Any) -> None:
        """As a servicer that is called with each request, after the first; ours only."""
        context.say(await context.read())
        context.listen(context.say)
        assert await context.read() is grpc.aio.EOF
        context.say(b"all")

    async def waits(self, request: bytes, _context: Any) -> bytes:
        self.began.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return request

    async def says_much(self, _request: bytes, _context: Any) -> AsyncIterator[bytes]:
        self.began.set()
        try:
            for _ in range(PIECES):
                yield PIECE
                self.wrote += 1
        finally:
            self.cancelled.set()

    async def hears_late(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        self.began.set()
        await self.go_on.wait()
        return b"%d" % len([request async for request in requests])

    async def aborts(self, _request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "größer als 100 %", trailing_metadata=(("k", "v"),))

    async def breaks(self, _request: bytes, _context: Any) -> bytes:
        raise ZeroDivisionError


_MORE = {
    "reads": "stream_stream",
    "listens": "stream_stream",
    "waits": "unary_unary",
    "says_much": "unary_stream",
    "hears_late": "stream_unary",
    "aborts": "unary_unary",
    "breaks": "unary_unary",
}


@asynccontextmanager
async def answering(
    ends: Ends, address: str, servicer: Servicer, grace: float = 0, options: Sequence[tuple[str, int]] = ()
) -> AsyncIterator[str]:
    """A server of `servicer`, stopped with `grace` seconds; gives its address. gRPC's own has more `options`."""
    server: Any = CallServer(address) if ends.server else grpc.aio.server(options=[*UNLIMITED, *options])
    handlers = {
        name: getattr(grpc, f"{_MORE.get(name, name)}_rpc_method_handler")(getattr(servicer, name))
        for name in [*KINDS, *_MORE]
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Calls", handlers),))
    if not ends.server:
        server.add_insecure_port(address)
    await server.start()
    try:
        yield address
    finally:
        await server.stop(grace)


def method(channel: Any, name: str) -> Any:
    """A method of Servicer, as a stub has it."""
    return getattr(channel, _MORE.get(name, name))(f"/test.Calls/{name}")
