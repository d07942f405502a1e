"""The RPCs of hopline.router.Router."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import cache, partial
from typing import Any

import grpc.aio

from services.common.errors import BrokerError, abort
from services.common.message import format_named
from services.router.changes import Changes
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.route import Route
from services.router.topology.topology import Topology
from services.router.watch import Watch
from services.router.watchers import Watchers
from services.router.wire import description, queue_message
from services.rpc import router_pb2, router_pb2_grpc

_Context = grpc.aio.ServicerContext[Any, Any]


class Handler(router_pb2_grpc.RouterServicer):
    """Requests in, answers out; every error is a typed one."""

    def __init__(self, topology: Topology, changes: Changes, watchers: Watchers, watch: Watch) -> None:
        self._topology = topology
        self._changes = changes
        self._watchers = watchers
        self._watch = watch

    async def Change(self, request: router_pb2.ChangeRequest, context: _Context) -> router_pb2.ChangeReply:  # noqa: N802
        """Answers when the change, and all that it saw, is kept and every watcher routes by it."""
        try:
            outcome, version = await self._changes.submit(partial(self._decide, request))
        except BrokerError as error:
            await abort(context, error)
        await self._watchers.settled(version)
        reply = router_pb2.ChangeReply(created=outcome.created, version=version)
        if outcome.queue:
            reply.queue.CopyFrom(queue_message(outcome.queue))
        return reply

    async def Route(self, request: router_pb2.RouteRequest, context: _Context) -> router_pb2.RouteReply:  # noqa: N802
        """Evaluates by the topology as it is, which may be ahead of the version that it tells."""
        try:
            routed = [self._routed(message) for message in request.messages]
        except BrokerError as error:  # properties that their format cannot read
            await abort(context, error)
        return router_pb2.RouteReply(routed=routed, version=self._changes.version)

    async def Watch(  # noqa: N802
        self, request_iterator: AsyncIterator[router_pb2.WatcherFrame], context: _Context
    ) -> AsyncIterator[router_pb2.TopologyFrame]:
        """See services/router/watch.py."""
        try:
            async for frame in self._watch.serve(request_iterator):
                yield frame
        except BrokerError as error:
            await abort(context, error)

    async def Describe(self, request: router_pb2.DescribeRequest, context: _Context) -> router_pb2.DescribeReply:  # noqa: ARG002, N802
        """Everything in one virtual host, or in all."""
        return description(self._topology.virtual_hosts, request.virtual_host)

    def _decide(self, request: router_pb2.ChangeRequest, effects: Effects) -> Outcome:
        return self._topology.change(request, effects)

    def _routed(self, message: router_pb2.Message) -> router_pb2.Routed:
        @cache
        def headers() -> Mapping[str, Any]:
            return format_named(message.format).headers(message.properties)

        route = self._topology.route(message.virtual_host, message.exchange, message.routing_key, headers)
        return _routed_message(route) if route else router_pb2.Routed(unknown_virtual_host=True)


def _routed_message(route: Route) -> router_pb2.Routed:
    return router_pb2.Routed(
        unknown_exchange=route.unknown_exchange,
        internal=route.internal,
        queue_ids=route.queue_ids,
        needs_headers=route.needs_headers,
    )
