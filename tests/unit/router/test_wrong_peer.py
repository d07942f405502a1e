"""A call that is meant for another router, at an address that was used again."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest

from services.common.clients.routers import Router
from services.common.errors import WrongPeer
from services.common.grpc_channel import connect
from services.common.grpc_errors import from_rpc
from services.rpc import router_pb2, router_pb2_grpc


async def test_another_member_is_refused(cluster: Any) -> None:
    """A change, a question and a watch that name another router are not carried out, and say why."""
    router = await cluster.start_router()
    address = cluster.settings.address_of("router")
    another = Router("router-of-before", address).metadata
    async with connect(address) as channel:
        stub = router_pb2_grpc.RouterStub(channel)
        for call in (
            stub.Change(cluster.request("declare_queue", name="q"), metadata=another),
            stub.Route(router_pb2.RouteRequest(), metadata=another),
            stub.Describe(router_pb2.DescribeRequest(), metadata=another),
            stub.Watch(metadata=another).read(),  # says nothing: what is being written as a call ends hides why it does
        ):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await call
            assert isinstance(from_rpc(failure.value), WrongPeer)
        meant = Router(router._member, address).metadata
        described = await stub.Describe(router_pb2.DescribeRequest(virtual_host="/"), metadata=meant)
        assert not described.queues
