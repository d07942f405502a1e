"""Dry runs, asked of the router: where a message would go, without sending it."""

from __future__ import annotations

from typing import Any

from services.common.clients.calls import Client, result
from services.common.dry_run import DryRun, told
from services.common.grpc_channel import connect
from services.common.message import arguments
from services.rpc import router_pb2, router_pb2_grpc

_DEADLINE = 10.0  # seconds


class DryRunClient(Client):
    """A connection to the router; created in a running loop."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address)
        self._stub: router_pb2_grpc.RouterAsyncStub = router_pb2_grpc.RouterStub(self._channel)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def route(self, virtual_host: str, exchange: str, routing_key: str, headers: dict[str, Any]) -> DryRun:
        """Raises NotFound for a virtual host or an exchange that is not there, else Unavailable."""
        request = router_pb2.ExplainRequest(
            virtual_host=virtual_host, exchange=exchange, routing_key=routing_key, headers=arguments.dump(headers)
        )
        reply = await result(self._stub.Explain(request, timeout=_DEADLINE))
        return told(request, headers, reply)
