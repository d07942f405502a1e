"""gRPC as all services use it: channels and servers, of our own streams or of a test's network."""

from __future__ import annotations

from typing import Any, Protocol, cast

import grpc
import grpc.aio

from services.common.secret import fields_for
from services.common.streams.channel import Channel
from services.common.streams.endpoint import LARGEST_MESSAGE, Doubt

MAX_FRAME = LARGEST_MESSAGE
"""Octets of a message, at most."""

# Calls are fewer than messages, and whoever is asked may be busy for a while.
_USUAL = Doubt(10.0, 5.0)
# A machine that is cut off, or dies with its network, says no goodbye: a process may be back there, and no word of it
# come on what was its predecessor's connection. So a client pings soon, also one that only watches, and leaves when
# the other kernel takes nothing: in time for its leases, and to hear who has those of others.
_OF_CALLS = Doubt(2.0, 13.0, untaken=1.5)
# Of what is sent much, a peer that stands still for a moment has no room for all: that is not given up so soon.
_OF_BULK = Doubt(2.0, 13.0)
# Where a standby takes over from a process that hangs while its kernel still answers.
_OF_DOUBT = Doubt(1.5, 1.5, locally=True)


class Runtime(Protocol):
    """Makes channels and servers."""

    def channel(self, address: str, *, bulk: bool = False) -> grpc.aio.Channel:
        """A channel to a gRPC target; `bulk`: for what may be more than the peer has room for."""

    def server(self, address: str, interceptors: list[Any]) -> grpc.aio.Server:
        """A server that will listen at `address`."""


class Streams:
    """Our own: see streams/README.md. On the wire it is gRPC."""

    def channel(self, address: str, *, bulk: bool = False) -> grpc.aio.Channel:
        """As Runtime.channel."""
        usual = _OF_BULK if bulk else _OF_CALLS
        made = Channel(address, fields_for(address), _OF_DOUBT if _doubts else usual)
        return cast("grpc.aio.Channel", made)  # it is one as far as we and generated code use it

    def server(self, address: str, interceptors: list[Any]) -> grpc.aio.Server:
        """As Runtime.server."""
        from services.common.streams.call_server import CallServer  # noqa: PLC0415 - most processes only call

        return cast("grpc.aio.Server", CallServer(address, interceptors, _USUAL))


_runtime: Runtime = Streams()


def set_runtime(runtime: Runtime) -> None:
    """From now on `runtime` makes this process's channels and servers: a test may carry the calls itself."""
    global _runtime  # noqa: PLW0603 - one for the whole process is the point
    _runtime = runtime


_doubts = False


def doubt_silence() -> None:
    """From now on this process's channels find out within seconds that the process at the other end hangs."""
    global _doubts  # noqa: PLW0603 - as above
    _doubts = True


def connect(address: str, *, bulk: bool = False) -> grpc.aio.Channel:
    """A channel to a gRPC target; connects at its first use, and again whenever the connection breaks.

    `bulk`: for what may be more than the peer has room for; of a machine that is gone it finds out later.
    """
    return _runtime.channel(address, bulk=bulk)


def serve(address: str, interceptors: list[Any]) -> grpc.aio.Server:
    """A server that will listen at `address`; services use `grpc_server.Server`, which adds to it."""
    return _runtime.server(address, interceptors)


async def is_serving(address: str, timeout: float = 2.0, what: str = "") -> bool:  # noqa: ASYNC109 - a gRPC deadline
    """Whether the service at `address` says that it is ready, or `what` of it: a former release may not tell of that,
    and is taken to be.
    """
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: PLC0415 - commands ask for no health, and wait

    async with connect(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            reply = await stub.Check(health_pb2.HealthCheckRequest(service=what), timeout=timeout)
        except grpc.aio.AioRpcError as failure:
            return bool(what) and failure.code() is grpc.StatusCode.NOT_FOUND
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
