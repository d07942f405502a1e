"""What a message costs on a stream of ours, and on one of gRPC's own runtime: two processes, a socket between them.

`python -m benchmarks.grpc_streams` lets them take turns and prints medians. A message is sent back as it is; thousands
are on their way at a time, or one. Both sides of a stream are of the same kind, and run on the same event loop.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.failure import BenchmarkError
from services.common.grpc_channel import connect as grpc_connect
from services.common.grpc_server import Server
from services.common.streams.client import ClientStream, connect
from services.common.streams.server import StreamServer
from services.common.streams.stream import Stream

ROUNDS = 5
ROUND_TRIPS = 500
LOADS = {256: 20_000, 64 << 10: 1000}  # octets of a message, and how many are sent
WINDOW = {256: 1000, 64 << 10: 32}  # that are on their way
_METHOD = "/benchmarks.Echo/Echo"


class _Echo:
    """What the server does with a message."""

    def __init__(self, stream: Stream) -> None:
        self.received = stream.write

    def writable(self) -> None:
        """What is written is kept until then."""

    def ended(self, _reason: str) -> None:
        """Nothing is to be done."""


class _Ours:
    """A client on a stream of ours: messages are sent back while others still go out."""

    def __init__(self) -> None:
        self.stream: ClientStream | None = None
        self._missing = self._unsent = 0
        self._body = b""
        self._done: asyncio.Future[None] | None = None

    async def send(self, body: bytes, count: int, window: int) -> None:
        """`count` messages, of which `window` are on their way; returns when all have come back."""
        assert self.stream
        self._body, self._missing, self._unsent = body, count, count - min(window, count)
        self._done = asyncio.get_running_loop().create_future()
        for _ in range(count - self._unsent):
            self.stream.write(body)
        await self._done

    def received(self, _message: bytes) -> None:
        self._missing -= 1
        if self._unsent and self.stream:
            self._unsent -= 1
            self.stream.write(self._body)
        if not self._missing and self._done:
            self._done.set_result(None)

    def writable(self) -> None:
        """What is written is kept until then."""

    def ended(self, reason: str) -> None:
        if self._done and not self._done.done():
            self._done.set_exception(ConnectionError(reason))


class _Grpc:
    """A client on a stream of grpc.aio: one task writes and one reads, as its documentation has it."""

    def __init__(self, call: Any) -> None:  # noqa: ANN401 - generic in its stubs only
        self._call = call

    async def send(self, body: bytes, count: int, window: int) -> None:
        """As the stream above."""
        room = asyncio.Semaphore(window)

        async def write() -> None:
            for _ in range(count):
                await room.acquire()
                await self._call.write(body)

        writer = asyncio.ensure_future(write())
        for _ in range(count):
            await self._call.read()
            room.release()
        await writer


Send = Callable[[bytes, int, int], Awaitable[None]]


async def _serve_ours(address: str) -> None:
    server = StreamServer(address, ())
    server.add_stream(_METHOD, _Echo)
    await server.listen()
    await asyncio.Event().wait()


async def _serve_grpc(address: str) -> None:
    import grpc  # noqa: PLC0415 - not in the process that serves ours

    async def answer(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(answer)
    server = Server(address, ())
    server.grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("benchmarks.Echo", {"Echo": handler}),))
    await server.listen()
    await server.grpc.wait_for_termination()


_SERVERS = {"ours": _serve_ours, "grpc": _serve_grpc}


async def _measure(send: Send) -> dict[str, float]:
    figures: dict[str, float] = {}
    await send(bytes(256), 500, 10)
    for size, count in LOADS.items():
        started = time.perf_counter()
        await send(bytes(size), count, WINDOW[size])
        figures[f"{size} octets, messages/s"] = count / (time.perf_counter() - started)
    times = []
    for _ in range(ROUND_TRIPS):
        started = time.perf_counter()
        await send(bytes(256), 1, 1)
        times.append(time.perf_counter() - started)
    figures["round trip, ms"] = statistics.median(times) * 1e3
    return figures


async def _rounds(addresses: dict[str, str]) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in addresses}
    async with grpc_connect(addresses["grpc"]) as channel:
        call: Any = channel.stream_stream(_METHOD)(wait_for_ready=True)
        ours = _Ours()
        ours.stream = await connect(addresses["ours"], _METHOD, ours)
        for _ in range(ROUNDS):
            found["ours"].append(await _measure(ours.send))
            found["grpc"].append(await _measure(_Grpc(call).send))
        ours.stream.close()
        call.cancel()
    return found


def _wait(servers: list[subprocess.Popen[bytes]], sockets: list[Path]) -> None:
    while not all(path.exists() for path in sockets):
        if any(server.poll() is not None for server in servers):
            raise BenchmarkError("a server of the streams has ended; it says why above")
        time.sleep(0.05)


def main() -> None:
    """A server with its name and an address for arguments, else the client, which starts them."""
    if len(sys.argv) > 1:
        uvloop.run(_SERVERS[sys.argv[1]](sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        addresses = {name: f"unix:{Path(folder) / name}" for name in _SERVERS}
        command = [sys.executable, "-m", "benchmarks.grpc_streams"]
        servers = [subprocess.Popen([*command, *each]) for each in addresses.items()]
        try:
            _wait(servers, [Path(address.removeprefix("unix:")) for address in addresses.values()])
            found = uvloop.run(_rounds(addresses))
        finally:
            for server in servers:
                server.kill()
                server.wait()
    for name, rounds in found.items():
        for figure in rounds[0]:
            print(f"{name:5} {figure:25} {statistics.median(each[figure] for each in rounds):12,.2f}")


if __name__ == "__main__":
    main()
