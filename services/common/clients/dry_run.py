"""Dry runs, asked of a router: where a message would go, without sending it."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from services.common.clients.calls import Client, result
from services.common.clients.routers import Routers
from services.common.clock import monotonic
from services.common.dry_run import DryRun, told
from services.common.errors import Unavailable
from services.common.grpc_channel import connect
from services.common.message import arguments
from services.rpc import router_pb2, router_pb2_grpc

_DEADLINE = 10.0  # seconds
_PATIENCE = 3.0
_SHORTLY = 1.0  # for one of several routers
_AGAIN = 0.1


class DryRuns(Protocol):
    """Tells where a message would go."""

    async def route(self, virtual_host: str, exchange: str, routing_key: str, headers: dict[str, Any]) -> DryRun:
        """Raises NotFound for a virtual host or an exchange that is not there, else Unavailable."""


class DryRunClient(Client):
    """A connection to one router; created in a running loop."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address)
        self._stub: router_pb2_grpc.RouterAsyncStub = router_pb2_grpc.RouterStub(self._channel)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def route(self, virtual_host: str, exchange: str, routing_key: str, headers: dict[str, Any]) -> DryRun:
        """As DryRuns says."""
        request = _request(virtual_host, exchange, routing_key, headers)
        return told(request, headers, await result(self._stub.Explain(request, timeout=_DEADLINE)))


class DryRunOfAny:
    """Asks the routers believed alive until one answers; waits a few seconds for a standby router to take over."""

    def __init__(self, routers: Routers) -> None:
        self._routers = routers

    async def route(self, virtual_host: str, exchange: str, routing_key: str, headers: dict[str, Any]) -> DryRun:
        """As DryRuns says."""
        request = _request(virtual_host, exchange, routing_key, headers)
        until = monotonic() + _PATIENCE
        while True:
            try:
                return told(request, headers, await self._ask(request))
            except Unavailable:
                if monotonic() >= until:
                    raise
            await asyncio.sleep(_AGAIN)

    async def _ask(self, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
        silent = Unavailable("no router answers at the moment; try again")
        for router in self._routers.evaluators():
            stub = self._routers.stub(router)
            try:
                return await result(stub.Explain(request, timeout=_SHORTLY, metadata=router.metadata))
            except Unavailable as failure:
                self._routers.judge(failure, router, stub)
                silent = failure
        raise silent


def _request(virtual_host: str, exchange: str, routing_key: str, headers: dict[str, Any]) -> router_pb2.ExplainRequest:
    return router_pb2.ExplainRequest(
        virtual_host=virtual_host, exchange=exchange, routing_key=routing_key, headers=arguments.dump(headers)
    )
