"""Calls to the router about virtual hosts, typed, for operators."""

from __future__ import annotations

from services.common.clients.calls import Client, result
from services.common.errors import NotFound, Unavailable
from services.common.grpc_channel import connect, is_serving
from services.rpc import router_pb2, router_pb2_grpc

_DEADLINE = 10.0  # seconds
_WAITS = "the router is there and has not done it yet: it waits for the store, or for a gateway; see `hopline health`"


class VirtualHostsClient(Client):
    """A connection to the router; every call raises the BrokerError that it answered with, or Unavailable."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel = connect(address)
        self._stub: router_pb2_grpc.RouterAsyncStub = router_pb2_grpc.RouterStub(self._channel)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def create(self, name: str) -> None:
        """Returns when every gateway knows it; one that exists stays as it is."""
        create = router_pb2.CreateVirtualHost(name=name)
        await self._change(router_pb2.ChangeRequest(create_virtual_host=create))

    async def delete(self, name: str) -> None:
        """Deletes it with everything in it; raises NotFound if there is no such virtual host."""
        if name not in await self.list():
            raise NotFound(f"vhost '{name}' not found")
        delete = router_pb2.DeleteVirtualHost(name=name)
        await self._change(router_pb2.ChangeRequest(delete_virtual_host=delete))

    async def list(self) -> list[str]:
        """All names, sorted."""
        reply = await result(self._stub.Describe(router_pb2.DescribeRequest(), timeout=_DEADLINE))
        return sorted(reply.virtual_hosts)

    async def _change(self, request: router_pb2.ChangeRequest) -> None:
        try:
            await result(self._stub.Change(request, timeout=_DEADLINE))
        except Unavailable as failure:
            if not failure.answered and await is_serving(self._address):
                failure = Unavailable(_WAITS)
                failure.answered = True
            raise failure from None
