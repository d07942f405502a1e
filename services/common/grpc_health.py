"""Health checking and reflection, which all our servers offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc


class Health:
    """For a server and its services, by their full names."""

    def __init__(self, services: Iterable[str], server: Any) -> None:  # noqa: ANN401 - of grpc.aio, or made like it
        """Adds both to `server`, which is NOT_SERVING once `say(serving=False)` was called."""
        self._names = [*services, ""]
        self._servicer = _Servicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        listed = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(
            reflection.aio.ReflectionServicer(listed, pool=None), server
        )

    def tell(self, name: str, holds: Callable[[], bool]) -> None:
        """Health checks of this name are answered by what holds then."""
        self._servicer.told[name] = holds

    async def say(self, *, serving: bool) -> None:
        """Sets the answer of health checks."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in self._names:
            await self._servicer.set(name, status)

    async def shut_down(self) -> None:
        """Answers NOT_SERVING, for good."""
        await self._servicer.enter_graceful_shutdown()


class _Servicer(health.aio.HealthServicer):  # type: ignore[misc]  # it has no types
    """The library has a newer method in its contract, and nothing behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, Callable[[], bool]] = {}

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802 - as the contract says
        """What is told by what holds now, else what was said."""
        if (holds := self.told.get(request.service)) is None:
            return await super().Check(request, context)
        reply = health_pb2.HealthCheckResponse
        return reply(status=reply.SERVING if holds() else reply.NOT_SERVING)

    async def List(self, _request: object, context: Any) -> None:  # noqa: ANN401, N802 - as the contract says
        """Whoever asks without the secret need not hear what services there are."""
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "services are not listed: Check tells of one, or of all")
