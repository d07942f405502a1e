"""gRPC as all services use it: limits for large messages, keepalive over TCP."""

from __future__ import annotations

from typing import Any, Protocol

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.grpc_saying import saying
from services.common.secret import fields_for

# A body of 100 MiB travels in one frame, with room for what goes with it.
MAX_FRAME = 256 << 20

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MAX_FRAME),
    ("grpc.max_send_message_length", MAX_FRAME),
    # Reconnect to restarting peers at once and then often: clients wait for each of these connections.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 250),
    # So many bytes of a stream may be on their way. Probing for the number costs both sides a ping per burst.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 8 << 20),
    # Two channels to one target share no connection: a stream full of messages must not delay a lease.
    ("grpc.use_local_subchannel_pool", 1),
    # Peers may ping as often as they see fit.
    ("grpc.http2.max_ping_strikes", 0),
    # Two processes on one port would each get half of the calls, and no error.
    ("grpc.so_reuseport", 0),
]

# The kernel tells at once when a local peer is gone; pings would wake two idle processes for nothing.
_OVER_THE_NETWORK: list[tuple[str, int]] = [
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # else it is a minute, whatever the timeout above says
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]

# Where a standby takes over from a process that hangs while its kernel still answers; on this machine too.
_OF_DOUBT: list[tuple[str, int]] = [
    ("grpc.keepalive_time_ms", 1_500),
    ("grpc.keepalive_timeout_ms", 1_500),
    ("grpc.http2.ping_timeout_ms", 1_500),
    ("grpc.http2.max_pings_without_data", 0),
    # A name's addresses may change: find the new standby before it takes over.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
]


class Runtime(Protocol):
    """Makes channels and servers."""

    def channel(self, address: str) -> grpc.aio.Channel:
        """A channel to a gRPC target."""

    def server(self, address: str, interceptors: list[Any]) -> grpc.aio.Server:
        """A server that will listen at `address`."""


class Grpc:
    """gRPC's own runtime."""

    def channel(self, address: str) -> grpc.aio.Channel:
        """As Runtime.channel."""
        options = dict(_options(address)) | dict(_OF_DOUBT if _doubts else [])
        return saying(grpc.aio.insecure_channel(address, options=list(options.items())), fields_for(address))

    def server(self, address: str, interceptors: list[Any]) -> grpc.aio.Server:
        """As Runtime.server."""
        return grpc.aio.server(options=_options(address), interceptors=interceptors)


_runtime: Runtime = Grpc()


def set_runtime(runtime: Runtime) -> None:
    """From now on `runtime` makes this process's channels and servers: a test may carry the calls itself."""
    global _runtime  # noqa: PLW0603 - one for the whole process is the point
    _runtime = runtime


_doubts = False


def doubt_silence() -> None:
    """From now on this process's channels find out within seconds that the process at the other end hangs."""
    global _doubts  # noqa: PLW0603 - as above
    _doubts = True


def connect(address: str) -> grpc.aio.Channel:
    """A channel to a gRPC target; connects at its first use, and again whenever the connection breaks."""
    return _runtime.channel(address)


def serve(address: str, interceptors: list[Any]) -> grpc.aio.Server:
    """A server that will listen at `address`; services use `grpc_server.Server`, which adds to it."""
    return _runtime.server(address, interceptors)


def _options(address: str) -> list[tuple[str, int]]:
    return _OPTIONS if address.startswith("unix:") else [*_OPTIONS, *_OVER_THE_NETWORK]


async def is_serving(address: str, timeout: float = 2.0) -> bool:  # noqa: ASYNC109 - a gRPC deadline, not a cancel
    """Whether the service at `address` says that it is ready."""
    async with connect(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
        except grpc.aio.AioRpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
