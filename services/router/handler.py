"""The RPCs of hopline.router.Router."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from services.common.errors import BrokerError, Unavailable, abort
from services.router.role import Role
from services.rpc import router_pb2, router_pb2_grpc

_Context = grpc.aio.ServicerContext[Any, Any]


class Handler(router_pb2_grpc.RouterServicer):
    """Requests in, answers out; every error is a typed one. `role` may be another one at any time."""

    def __init__(self) -> None:
        self.role: Role | None = None

    async def Change(self, request: router_pb2.ChangeRequest, context: _Context) -> router_pb2.ChangeReply:  # noqa: N802
        """Answers when every watcher routes by it."""
        try:
            return await self._role().change(request)
        except BrokerError as error:
            await abort(context, error)

    async def Route(self, request: router_pb2.RouteRequest, context: _Context) -> router_pb2.RouteReply:  # noqa: N802
        """Answers for all messages or for none."""
        try:
            return self._role().route(request)
        except BrokerError as error:
            await abort(context, error)

    async def Watch(  # noqa: N802
        self, request_iterator: AsyncIterator[router_pb2.WatcherFrame], context: _Context
    ) -> AsyncIterator[router_pb2.TopologyFrame]:
        """See services/router/watch.py."""
        try:
            async for frame in self._role().watch(request_iterator):
                yield frame
        except BrokerError as error:
            await abort(context, error)

    async def Describe(self, request: router_pb2.DescribeRequest, context: _Context) -> router_pb2.DescribeReply:  # noqa: N802
        """Everything in one virtual host, or in all."""
        try:
            return self._role().describe(request.virtual_host)
        except BrokerError as error:
            await abort(context, error)

    async def Explain(self, request: router_pb2.ExplainRequest, context: _Context) -> router_pb2.ExplainReply:  # noqa: N802
        """Evaluates, and sends nothing."""
        try:
            return self._role().explain(request)
        except BrokerError as error:
            await abort(context, error)

    def _role(self) -> Role:
        if self.role is None:
            raise Unavailable("this router is not ready yet")
        return self.role
