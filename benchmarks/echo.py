"""What gRPC itself costs here and now: one message at a time over a bare stream between two processes.

`python -m benchmarks.echo` prints the median in milliseconds. It is the measure for idle round trips: how fast a
machine wakes up from idling differs more than brokers do. The broker goes without gRPC's runtime, so that a round trip,
which does all that a broker does, need not take much longer.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.failure import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_MESSAGES = 1000
_WARM_UP = 100
_PAUSE_SECONDS = 0.001
_BODY = bytes(256)
_METHOD = "/benchmarks.Echo/Echo"


def echo() -> float:
    """Milliseconds, the median. Runs in processes of its own: gRPC does not survive a fork."""
    command = [sys.executable, "-m", "benchmarks.echo"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if ended.returncode:
        raise BenchmarkError(f"the gRPC echo failed: {ended.stderr.strip()}")
    return float(ended.stdout)


async def _serve(address: str) -> None:
    import grpc.aio  # noqa: PLC0415 - not in the process that forks

    async def answer(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(answer)
    server = grpc.aio.server()
    service = grpc.method_handlers_generic_handler("benchmarks.Echo", {"Echo": handler})
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


async def _measure(address: str) -> float:
    import grpc.aio  # noqa: PLC0415 - as above

    times: list[float] = []
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_stream(_METHOD)(wait_for_ready=True)
        for _ in range(_WARM_UP + _MESSAGES):
            await asyncio.sleep(_PAUSE_SECONDS)
            started = time.perf_counter()
            await call.write(_BODY)
            await call.read()
            times.append(time.perf_counter() - started)
    return statistics.median(times[_WARM_UP:]) * 1e3


def main() -> None:
    """The server with an address for argument, else the client, which starts it."""
    if len(sys.argv) > 1:
        uvloop.run(_serve(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{Path(folder) / 'echo.sock'}"
        server = subprocess.Popen([sys.executable, "-m", "benchmarks.echo", address])
        try:
            print(uvloop.run(_measure(address)))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
