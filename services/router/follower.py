"""A router that does not write: evaluates by a replica, hands changes on, and is ready to take the lease over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from services.common.clients.routers import ROLE
from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.errors import Unavailable
from services.common.topology.records import Record, RecordKey
from services.router.evaluate import evaluate
from services.router.explaining import explained
from services.router.finding import found_binding
from services.router.replica import Replica
from services.router.topology.topology import Topology
from services.router.wire import description
from services.rpc import router_pb2

_TAKES_OVER = "this router takes over; ask again"
_DEAF = "this router does not hear from the one that writes"


class Follower:
    """A Role. It has a place as every watcher has: no change is answered before the replica has it."""

    def __init__(
        self, store: StoreClient, member: str, create: Callable[[], Topology], hears_store: Callable[[], bool]
    ) -> None:
        """`hears_store` says whether the store answers this router."""
        self._member = member
        self._hears_store = hears_store
        self._replica = Replica(create)
        self._client = TopologyClient(store, member, ROLE, "", self._replica)
        self._changes: dict[
            asyncio.Task[router_pb2.ChangeReply], None
        ] = {}  # that the router which writes is asked for
        self._over = False
        self._restarted: int | None = None  # the version, when the store was

    async def start(self) -> None:
        """Returns when the topology is known; waits for a router that writes as long as it takes."""
        await self._client.start()

    async def stop(self, *, leave: bool = True) -> None:
        """Gives its place up, when there is somebody to give it to. Who waits for a change has to ask again."""
        self._over = True
        for change in self._changes:
            change.cancel()
        await self._client.stop(leave=leave)

    def when_routers_change(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever routers come, go, or take the lease."""
        self._client.routers.listeners.append(listener)

    @property
    def topology(self) -> Topology:
        """As far as it is known; to be looked at only."""
        return self._replica.topology

    def store_restarted(self) -> None:
        """The store has lost what it kept in memory, which this router knows if it has its place."""
        self._restarted = self._replica.version if self._client.has_place() else None

    def lost(self) -> dict[RecordKey, Record]:
        """What the store may not have yet: the router that writes puts it again before it changes anything else."""
        if self._restarted is None or self._restarted != self._replica.version:
            return {}
        return {key: record for key, record in self._replica.topology.all_records() if record.transient}

    # -------------------------------------------------------------- as Role says

    async def change(self, request: router_pb2.ChangeRequest, asker: str = "") -> router_pb2.ChangeReply:  # noqa: ARG002 - it is waited for as well
        """Answers what the router that writes has answered; raises Unavailable when this one is to be it."""
        writer = self._client.routers.writer
        if writer and writer.member == self._member:
            raise Unavailable(_TAKES_OVER)
        change = asyncio.ensure_future(self._client.change(request))
        self._changes[change] = None
        change.add_done_callback(self._changes.pop)
        try:
            return await change
        except asyncio.CancelledError:
            # An RPC whose handler is cancelled would stay without an answer.
            if self._over:
                raise Unavailable(_TAKES_OVER) from None
            raise

    async def route(self, request: router_pb2.RouteRequest) -> router_pb2.RouteReply:
        """Evaluates while it has its place: then it knows every change that was answered."""
        self._check()
        version = self._replica.version
        return router_pb2.RouteReply(routed=await evaluate(self._replica.topology, request.messages), version=version)

    async def watch(self, frames: AsyncIterator[router_pb2.WatcherFrame]) -> AsyncIterator[router_pb2.TopologyFrame]:  # noqa: ARG002 - as Role says
        """Refuses: places are given by the router that writes alone."""
        raise Unavailable("this router does not write; the store's lease table says which one does")
        yield  # what makes it a generator

    def describe(self, virtual_host: str) -> router_pb2.DescribeReply:
        """As every change that was answered has left it."""
        self._check()
        return description(self._replica.topology.virtual_hosts, virtual_host)

    def explain(self, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
        """As every change that was answered has left it."""
        self._check()
        return explained(self._replica.topology, request)

    def find_binding(self, request: router_pb2.FindBindingRequest) -> router_pb2.FindBindingReply:
        """As every change that was answered has left it."""
        self._check()
        return found_binding(self._replica.topology, request)

    def _check(self) -> None:
        if not self._client.has_place():
            cause = "see that it runs" if self._hears_store() else "the store does not answer, see that it runs"
            raise Unavailable(f"{_DEAF}: {cause}")
