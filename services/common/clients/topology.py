"""The router's client: queue definitions at hand, routes asked for, changes made, and a place among the watchers.

A watcher has its place while the router counts on it: then no change is answered before this process has acknowledged
it, so what is remembered of routes is true. Without a place nothing may be routed from memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio
import structlog

from services.common.clients.reachable import is_refused
from services.common.clients.topology_mirror import TopologyListener, TopologyMirror
from services.common.clock import monotonic
from services.common.errors import from_rpc
from services.common.grpc_channel import connect
from services.common.runtime import Tasks
from services.rpc import router_pb2, router_pb2_grpc

__all__ = ["TopologyClient", "TopologyListener"]

T = TypeVar("T")

_BACKOFF = 0.1
_PATIENCE = 10.0
_FAREWELL = 1.0
_TTL_UNTIL_TOLD = 1.0
_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)

log = structlog.get_logger()


class TopologyClient:
    """Watches the router at `address` as `member`, whose connections' names begin with `connections_prefix`.

    Created in a running loop. Add to `listeners` before `start`. `queues`, `by_name` (by virtual host and name) and
    `virtual_hosts` are to be read only.
    """

    def __init__(self, address: str, member: str, role: str, connections_prefix: str) -> None:
        self._mirror = TopologyMirror()
        self.queues = self._mirror.queues
        self.by_name = self._mirror.by_name
        self.virtual_hosts = self._mirror.virtual_hosts
        self.listeners = self._mirror.listeners
        self._address = address
        self._introduction = router_pb2.WatcherFrame(member=member, role=role, connections=connections_prefix)
        self._channel = connect(address)
        self._stub = router_pb2_grpc.RouterStub(self._channel)
        self._tasks = Tasks()
        self._watching: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()  # there is something to say
        self._synced = asyncio.Event()
        self._leaving = False
        self._ttl = _TTL_UNTIL_TOLD
        self._place_until = 0.0

    @property
    def version(self) -> int:
        """Of the topology that this process routes by."""
        return self._mirror.version

    async def start(self) -> None:
        """Returns when the topology is known; waits for the router as long as it takes."""
        self._watching = self._tasks.start(self._keep_watching(), "topology")
        await self._synced.wait()

    async def stop(self) -> None:
        """Gives the place up at once, and with it the exclusive queues of this process's connections."""
        self._leaving = True
        self._place_until = 0.0
        self._wake.set()
        if self._watching:
            await asyncio.wait([self._watching], timeout=_FAREWELL)
        await self._tasks.stop()
        await self._channel.close()

    def has_place(self) -> bool:
        """Whether what is remembered of routes may be used; cheap enough to be asked for every run of messages."""
        return monotonic() < self._place_until

    async def change(self, request: router_pb2.ChangeRequest) -> router_pb2.ChangeReply:
        """Returns when every watcher routes by it; raises what the change raises, Unavailable after ten seconds."""
        return await _patiently(lambda left: self._stub.Change(request, timeout=left))

    async def route(self, messages: list[router_pb2.Message]) -> router_pb2.RouteReply:
        """Where messages go, in their order; raises Unavailable after ten seconds."""
        request = router_pb2.RouteRequest(messages=messages)
        return await _patiently(lambda left: self._stub.Route(request, timeout=left))

    # -------------------------------------------------------------- the stream

    async def _keep_watching(self) -> None:
        while not self._leaving:
            self._mirror.begin()
            try:
                async for frame in self._stub.Watch(self._say()):
                    self._hear(frame)
            except grpc.aio.AioRpcError as failure:
                if self._synced.is_set() and not self._leaving:
                    log.info("topology stream ended, attaching again", reason=failure.details())
            if not self._leaving:
                await self._ask_whether_gone()
                await asyncio.sleep(_BACKOFF)

    async def _say(self) -> AsyncIterator[router_pb2.WatcherFrame]:
        now = beaten = monotonic()
        first = self._frame(beat=now)
        first.MergeFrom(self._introduction)
        yield first
        while not self._leaving:
            await self._pause(beaten + self._ttl / 4 - monotonic())
            now = monotonic()
            due = now >= beaten + self._ttl / 4
            beaten = now if due else beaten
            yield self._frame(beat=now if due else 0.0)
        yield router_pb2.WatcherFrame(leaving=True)

    def _frame(self, beat: float) -> router_pb2.WatcherFrame:
        # Rounded down: the place must not seem safe for longer than it is.
        return router_pb2.WatcherFrame(acknowledged=self.version, beat_ms=int(beat * 1000))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _hear(self, frame: router_pb2.TopologyFrame) -> None:
        known = self.version
        if frame.place_ttl_ms:
            self._ttl = frame.place_ttl_ms / 1000
        if self._mirror.take(frame):
            self._synced.set()
        if frame.beat_ms:
            self._place_until = max(self._place_until, frame.beat_ms / 1000 + self._ttl)
        if self.version != known:
            self._wake.set()

    async def _ask_whether_gone(self) -> None:
        """A router that is gone changes nothing, and the next one waits a whole `place_ttl` for this process."""
        asked = monotonic()
        if self.has_place() and await is_refused(self._address):
            self._place_until = max(self._place_until, asked + self._ttl)


async def _patiently(call: Callable[[float], Awaitable[T]]) -> T:
    """Again and again while the router is away."""
    until = monotonic() + _PATIENCE
    while True:
        try:
            return await call(max(until - monotonic(), _BACKOFF))
        except grpc.aio.AioRpcError as failure:
            if failure.code() not in _AGAIN or monotonic() + _BACKOFF >= until:
                raise from_rpc(failure) from failure
        await asyncio.sleep(_BACKOFF)
