"""The RPCs of hopline.router.Router."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from services.common.clients.routers import ASKER_KEY, MEMBER_KEY
from services.common.errors import Unavailable, WrongPeer
from services.router.role import Role
from services.rpc import router_pb2, router_pb2_grpc

_Context = grpc.aio.ServicerContext[Any, Any]


class Handler(router_pb2_grpc.RouterServicer):
    """Requests in, answers out; what a role raises is the answer. `role` may be another one at any time."""

    def __init__(self, member: str) -> None:
        """`member` is this router; calls that are meant for another one are refused."""
        self.role: Role | None = None
        self._member = member

    async def Change(self, request: router_pb2.ChangeRequest, context: _Context) -> router_pb2.ChangeReply:  # noqa: N802
        """Answers when every watcher routes by it."""
        return await self._role(context).change(request, _said(context, ASKER_KEY))

    async def Route(self, request: router_pb2.RouteRequest, context: _Context) -> router_pb2.RouteReply:  # noqa: N802
        """Answers for all messages or for none."""
        return await self._role(context).route(request)

    async def Watch(  # noqa: N802
        self, request_iterator: AsyncIterator[router_pb2.WatcherFrame], context: _Context
    ) -> AsyncIterator[router_pb2.TopologyFrame]:
        """See services/router/watch.py."""
        async for frame in self._role(context).watch(request_iterator):
            yield frame

    async def Describe(self, request: router_pb2.DescribeRequest, context: _Context) -> router_pb2.DescribeReply:  # noqa: N802
        """Everything in one virtual host, or in all."""
        return self._role(context).describe(request.virtual_host)

    async def Explain(self, request: router_pb2.ExplainRequest, context: _Context) -> router_pb2.ExplainReply:  # noqa: N802
        """Evaluates, and sends nothing."""
        return self._role(context).explain(request)

    async def FindBinding(  # noqa: N802
        self, request: router_pb2.FindBindingRequest, context: _Context
    ) -> router_pb2.FindBindingReply:
        """See services/router/topology/find_binding.py."""
        return self._role(context).find_binding(request)

    def _role(self, context: _Context) -> Role:
        meant = _said(context, MEMBER_KEY) or self._member
        if meant != self._member:
            raise WrongPeer(f"the router is being replaced: {self._member} is in the place of {meant}; try again")
        if self.role is None:
            raise Unavailable("this router is not ready yet")
        return self.role


def _said(context: _Context, name: str) -> str:
    return str(dict(context.invocation_metadata() or ()).get(name, ""))
