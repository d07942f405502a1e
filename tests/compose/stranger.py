"""Run in a container on the stack's network that has no secret: tries the ports that it is given as HOST:PORT, and says
what came of it, a line each: address, protocol, answer. The image has what it imports.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from nats.aio.client import Client

SECONDS = 5


async def main() -> None:
    for address in sys.argv[1:]:
        for what, attempt in (("gRPC", _grpc), ("NATS", _nats), ("HTTP", _http)):
            with suppress(Exception):  # any error that keeps a stranger out
                async with asyncio.timeout(SECONDS):
                    sys.stdout.write(f"{address} {what} {await attempt(address)}\n")


async def _grpc(address: str) -> str:
    """The status of a call that lists what the server offers; raises where the port does not speak gRPC."""
    async with grpc.aio.insecure_channel(address) as channel:
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked)
        try:
            answer = await call.read()
        except grpc.aio.AioRpcError as failure:
            if failure.code() is grpc.StatusCode.UNAVAILABLE:
                raise  # not gRPC
            return "refused"
        return f"answered {answer}"


async def _nats(address: str) -> str:
    client = Client()
    try:
        await client.connect(f"nats://{address}", allow_reconnect=False, connect_timeout=SECONDS - 2)
    except Exception as failure:
        if "uthorization" in str(failure):
            return "refused"
        raise
    return "connected"


async def _http(address: str) -> str:
    """The status of an HTTP request, as pages of statistics and profilers answer it; raises where it is not HTTP."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        version, status, *_ = (await reader.readline()).split()
    finally:
        writer.close()
    if not version.startswith(b"HTTP/"):
        raise ValueError(version)
    return f"answered {int(status)}"


asyncio.run(main())
