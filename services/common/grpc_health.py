"""Health checking and reflection, which every server of ours offers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc


class Health:
    """Of a server and its services, by their full names."""

    def __init__(self, services: Iterable[str], server: Any) -> None:  # noqa: ANN401 - of grpc.aio, or made like it
        """Adds both to `server`, which is NOT_SERVING once that was said."""
        self._names = [*services, ""]
        self._servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        listed = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(
            reflection.aio.ReflectionServicer(listed, pool=None), server
        )

    async def say(self, *, serving: bool) -> None:
        """What health checks are answered from now on."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in self._names:
            await self._servicer.set(name, status)

    async def shut_down(self) -> None:
        """NOT_SERVING, for good."""
        await self._servicer.enter_graceful_shutdown()
