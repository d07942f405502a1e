"""A router that answers dry runs by a topology at hand, over real gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.grpc_server import Server
from services.router.explaining import explained
from services.router.handler import Handler
from services.rpc import router_pb2_grpc
from tests.support.topology_bench import Bench

if TYPE_CHECKING:
    from services.rpc import router_pb2


class ExplainingRouter:
    """`bench` is what it knows; as a Role it can do this one thing."""

    def __init__(self) -> None:
        self.bench = Bench()
        self._server: Server | None = None

    async def start(self, address: str) -> None:
        handler = Handler(address)  # which is its name too, in the tables of tests
        handler.role = self
        self._server = Server(address, ["hopline.router.Router"])
        router_pb2_grpc.add_RouterServicer_to_server(handler, self._server.grpc)
        await self._server.listen()
        await self._server.ready()

    async def stop(self) -> None:
        assert self._server
        await self._server.stop(0)

    def explain(self, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
        return explained(self.bench.topology, request)
