"""Calls over the network, and which are answered: of our channels and of gRPC's, of our streams, of NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from nats.errors import Error

from services.common import secret
from services.common.bus.nats_link import Away, NatsLink
from services.common.grpc_channel import connect, is_serving
from services.common.grpc_server import Server
from services.common.streams.client import connect as connect_stream
from tests.support.nats_server import NatsServer
from tests.support.ports import free_port
from tests.support.stack import HOST
from tests.support.stream_ends import METHOD, Heard, serving, until, within

KINDS = ["unary_unary", "unary_stream", "stream_unary", "stream_stream"]


async def _one(_request: Any, _context: object) -> bytes:
    return b"answer"


async def _several(_request: Any, _context: object) -> AsyncIterator[bytes]:
    yield b"answer"


@asynccontextmanager
async def answering() -> AsyncIterator[str]:
    """A server with a method of each kind; gives its address."""
    address = f"{HOST}:{free_port()}"
    server = Server(address, ["test.Kinds"])
    handlers = {
        kind: getattr(grpc, f"{kind}_rpc_method_handler")(_one if kind.endswith("unary") else _several)
        for kind in KINDS
    }
    server.grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Kinds", handlers),))
    await server.listen()
    await server.ready()
    try:
        yield address
    finally:
        await server.stop(0)


async def call(channel: grpc.aio.Channel, kind: str, *, say: bool = True) -> bytes:
    """The answer of one call; a stream of requests has one of them, or none."""

    async def requests() -> AsyncIterator[bytes]:
        if say:
            yield b"question"

    request = b"question" if kind.startswith("unary") else requests()
    called = getattr(channel, kind)(f"/test.Kinds/{kind}")(request, timeout=10, metadata=[("x", "y")])
    if kind.endswith("unary"):
        return bytes(await called)
    return b"".join([each async for each in called])


@pytest.mark.parametrize("kind", KINDS)
async def test_grpc(known: str, kind: str) -> None:
    """A caller with the secret is answered; one without, or with another, gets UNAUTHENTICATED and what to do."""
    async with answering() as address:
        async with connect(address) as ours:
            assert await call(ours, kind) == b"answer"
        for stranger in ("", f"{known}x"):
            secret.use(stranger)
            async with connect(address) as theirs:
                secret.use(known)
                with pytest.raises(grpc.aio.AioRpcError) as failure:
                    await call(theirs, kind, say=False)
            assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "HOPLINE_SECRET_FILE" in (failure.value.details() or "")


async def test_health_needs_no_secret(known: str) -> None:
    """Orchestrators of containers ask for it, and cannot send a secret."""
    async with answering() as address:
        secret.use("")
        assert await is_serving(address)
        secret.use(known)


async def test_a_stranger_says_little(known: str) -> None:
    """A health check names a service: what is as large as a message of ours is not taken in."""
    async with answering() as address:
        secret.use("")
        async with connect(address) as theirs:
            secret.use(known)
            check = theirs.unary_unary("/grpc.health.v1.Health/Check")
            reply = health_pb2.HealthCheckResponse.FromString(await check(b"", timeout=10))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await check(bytes(64 << 20), timeout=10)
            assert failure.value.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
            watch = theirs.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=10)
            assert await watch.read() == reply.SerializeToString()
            watch.cancel()


async def test_streams(known: str) -> None:
    """The same on the streams that carry messages: no listener is made for a stranger."""
    async with serving(f"{HOST}:0") as served:
        secret.use("")
        stranger = Heard()
        stream = await connect_stream(served.address, METHOD, stranger)
        secret.use(known)
        await until(lambda: stranger.reasons)
        stream.close()
        assert "UNAUTHENTICATED" in stranger.reasons[0]
        assert not served.heard
        friend = Heard()
        stream = await connect_stream(served.address, METHOD, friend)
        stream.write(b"x")
        await until(lambda: served.heard and served.heard[0].messages)
        stream.close()


async def test_reflection_on_streams_servers(known: str) -> None:
    """Of gRPC's own servicers, which our server has too, only health needs no secret."""
    async with serving(f"{HOST}:0") as served:
        async with grpc.aio.insecure_channel(served.address) as channel:
            reflect = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")()
            assert await within(reflect.code()) is grpc.StatusCode.UNAUTHENTICATED
        secret.use("")
        assert await is_serving(served.address)
        secret.use(known)


async def test_nats(known: str, tmp_path: Path) -> None:
    """Accepts clients with the stack's secret, and no others; the secret is in no command line."""
    server = NatsServer(tmp_path)
    await server.start()
    try:
        assert not any(word in " ".join(server.command) for word in (known, secret.nats_token()))
        await (await NatsLink.connect(server.address, "friend")).close()
        secret.use("")
        with pytest.raises((Away, Error)):
            await NatsLink.connect(server.address, "stranger")
    finally:
        secret.use("")
        server.kill()
