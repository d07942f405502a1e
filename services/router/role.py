"""What a router does for whoever asks it: another thing for the one that writes than for those that follow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from services.rpc import router_pb2


class Role(Protocol):
    """The RPCs of hopline.router.Router; all of them raise BrokerError."""

    async def change(self, request: router_pb2.ChangeRequest, asker: str = "") -> router_pb2.ChangeReply:
        """Returns when every watcher routes by the change; but for `asker`, which waits for its version itself."""

    async def route(self, request: router_pb2.RouteRequest) -> router_pb2.RouteReply:
        """Where messages go; raises Unavailable while that is not known for certain."""

    def watch(self, frames: AsyncIterator[router_pb2.WatcherFrame]) -> AsyncIterator[router_pb2.TopologyFrame]:
        """See services/router/watch.py."""

    def describe(self, virtual_host: str) -> router_pb2.DescribeReply:
        """Everything in one virtual host, or in all."""

    def explain(self, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
        """Where a message would go, and why."""

    def find_binding(self, request: router_pb2.FindBindingRequest) -> router_pb2.FindBindingReply:
        """Whether an exchange has a binding."""
