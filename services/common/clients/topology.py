"""The routers' client: it keeps queue definitions, asks for routes, makes changes, and has a place among the watchers.

A watcher has a place while the router that writes waits for it: no change is answered before this watcher has
acknowledged it, so the routes that it remembers are true. Without a place nothing may be routed from memory.

A watcher whose router falls silent keeps its place as long as no router can write: the next one waits a whole
`place_ttl`, from when it begins, for all that had a place, and a router whose lease has run out answers no change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import grpc
import grpc.aio
import structlog

from services.common.clients.calls import unless_given_up
from services.common.clients.partition_table import ROLE as QUEUE_PROCESS
from services.common.clients.routers import ASKER_KEY, Replaced, Router, Routers
from services.common.clients.store import StoreClient
from services.common.clients.topology_mirror import Copy, TopologyListener, TopologyMirror
from services.common.clock import monotonic, until_next
from services.common.containment import contained, for_each
from services.common.errors import BrokerError, InternalError, Unavailable, WrongPeer
from services.common.grpc_errors import was_answered
from services.common.runtime import Tasks
from services.rpc import router_pb2

if TYPE_CHECKING:
    from services.rpc.router_pb2_grpc import RouterAsyncStub

__all__ = ["TopologyClient", "TopologyListener"]

T = TypeVar("T")
Metadata = tuple[tuple[str, str], ...]

_BACKOFF = 0.1
_PATIENCE = 30.0  # while no router answers: long enough for one to restart
_FAREWELL = 1.0
_SHORTLY = 0.5  # for a router that does not write to evaluate a route; then the writing one is asked
_TTL_UNTIL_TOLD = 1.0
# Parts of the time for which a place is good:
_BEAT = 1 / 3
_SILENT = 1 / 2  # without an answer to a beat
_ENOUGH = 2  # routers that went away during the same request
_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_NO_ROUTER = f"no router has answered for {_PATIENCE:.0f} s, known routes work on; try again"

log = structlog.get_logger()


class Mirror(Protocol):
    """What a watcher keeps of the topology."""

    @property
    def version(self) -> int:
        """The version of the last frame or snapshot that was taken in full."""

    def begin(self) -> None:
        """Frames of a new stream follow."""

    def take(self, frame: router_pb2.TopologyFrame) -> bool:
        """Takes a frame over; false while the rest of a snapshot is still to come."""


class _Beat:
    """Wakes who has to say that it is there. The timer decides, not the clock: it may fire a moment early."""

    def __init__(self, wake: asyncio.Event) -> None:
        self.is_due = False
        self._wake = wake
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, seconds: float) -> None:
        """From now on; `is_due` is true after that."""
        self.is_due = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._now)

    def cancel(self) -> None:
        """It wakes nobody any more."""
        if self._timer:
            self._timer.cancel()

    def _now(self) -> None:
        self.is_due = True
        self._wake.set()


class TopologyClient:
    """Watches the router that writes as `member`, whose connections' names begin with `connections_prefix`.

    Created in a running loop. Add to `listeners` before `start`. `queues`, `by_name` and
    `virtual_hosts` are read-only for callers; with a `mirror` of another kind they stay empty. A `copy` gets exchanges
    and bindings too.
    """

    def __init__(
        self,
        store: StoreClient,
        member: str,
        role: str,
        connections_prefix: str,
        mirror: Mirror | None = None,
        copy: Copy | None = None,
        ahead: Callable[[router_pb2.TopologyFrame], Awaitable[object]] | None = None,
    ) -> None:
        """`ahead` is awaited before a frame is taken, and what it gives is kept until then."""
        known = TopologyMirror(copy)
        self.queues = known.queues
        self.by_name = known.by_name
        self.virtual_hosts = known.virtual_hosts
        self.listeners = known.listeners
        self.routers = Routers(store, member)
        self._mirror = mirror or known
        self._ahead = ahead
        self._introduction = router_pb2.WatcherFrame(
            member=member, role=role, connections=connections_prefix, evaluates=copy is not None
        )
        self._tasks = Tasks()
        self._watching: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()  # there is a version to acknowledge, or this process leaves
        self._synced = asyncio.Event()
        self._placed = asyncio.Event()
        self._heard = False  # a frame came on this stream
        self._acknowledged = 0  # the last version that it has said it routes by
        self._leaving = False
        # A queue process is not told of every version.
        self._asker: Metadata = () if role == QUEUE_PROCESS else ((ASKER_KEY, member),)
        self._for_newer: list[asyncio.Future[None]] = []  # of changes that this watcher does not route by yet
        self._ttl = _TTL_UNTIL_TOLD
        self._place_until = 0.0

    @property
    def version(self) -> int:
        """The version of the topology that this process routes by."""
        return self._mirror.version

    async def start(self) -> None:
        """Returns when the topology is known; waits for the router as long as it takes."""
        self.routers.start()
        self._watching = self._tasks.start(self._keep_watching(), "topology")
        self._tasks.start(self._keep_place(), "place in the topology")
        await self._synced.wait()

    async def stop(self, *, leave: bool = True) -> None:
        """Gives the place up at once, and with it the exclusive queues of this process's connections."""
        self._leaving = True
        self._place_until = 0.0
        self._wake.set()
        self._look_again()
        if self._watching and leave:
            await asyncio.wait([self._watching], timeout=_FAREWELL)
        await self._tasks.stop()
        await self.routers.stop()

    def has_place(self) -> bool:
        """Whether remembered routes may be used; cheap enough to be called for every run of messages."""
        return monotonic() < self._place_until

    async def change(self, request: router_pb2.ChangeRequest) -> router_pb2.ChangeReply:
        """Returns when every watcher routes by the change; raises its error, or Unavailable after half a minute.

        The news of it may come after the answer: a round trip sooner than if the router waited for this watcher too.
        """
        until = monotonic() + _PATIENCE
        reply = await self._of_writer(
            lambda stub, left, member: stub.Change(
                request, timeout=left, metadata=(*member, *self._asker), wait_for_ready=True
            )
        )
        if self._asker and self.version < reply.version:
            await self._routes_by(reply.version, until)
        return reply

    async def _routes_by(self, version: int, until: float) -> None:
        """Who leaves routes nothing any more, and hears of nothing."""
        try:
            async with asyncio.timeout(max(until - monotonic(), 0.0)):
                while self.version < version and not self._leaving:
                    newer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._for_newer.append(newer)
                    await newer
        except TimeoutError:
            raise Unavailable(_NO_ROUTER) from None

    async def route(self, messages: list[router_pb2.Message], metadata: Metadata = ()) -> router_pb2.RouteReply:
        """Where messages go, in their order; raises Unavailable after half a minute.

        A reply older than `version` still holds every change that was answered; it must not be remembered.
        """
        request = router_pb2.RouteRequest(messages=messages)
        near = self.routers.evaluator()
        if near and near != self.routers.writer:
            stub = self.routers.stub(near)
            try:
                return await _awaited(stub.Route(request, timeout=_SHORTLY, metadata=(*metadata, *near.metadata)))
            except grpc.aio.AioRpcError as failure:
                error = self.routers.judge(failure, near, stub)
                if not isinstance(error, Unavailable):
                    raise error from failure  # the writing router would answer the same
                log.debug("asking the router that writes", instead_of=near.address, reason=error.text)
        return await self._of_writer(
            lambda stub, left, member: stub.Route(
                request, timeout=left, metadata=(*metadata, *member), wait_for_ready=True
            )
        )

    async def find_binding(self, request: router_pb2.FindBindingRequest) -> router_pb2.FindBindingReply:
        """Whether an exchange has a binding; raises NotFound, Unavailable after half a minute."""
        return await self._of_writer(
            lambda stub, left, member: stub.FindBinding(request, timeout=left, metadata=member, wait_for_ready=True)
        )

    async def _of_writer(self, call: Callable[[RouterAsyncStub, float, Metadata], Awaitable[T]]) -> T:
        """Calls the writing router, again while there is none; but not a third router if two went away during it.

        `call` waits for a connection: if it fails, it was under way, so a router that was down before does not count.
        """
        until = monotonic() + _PATIENCE
        gone: set[str] = set()
        while (left := until - monotonic()) > 0:
            if len(gone) >= _ENOUGH:
                raise InternalError(f"{_ENOUGH} routers went away while they were asked for this; no other is asked")
            try:
                writer = self.routers.writer or await self._writer_within(left)
                stub = self.routers.stub(writer)
                return await self.routers.while_writing(writer, _awaited(call(stub, left, writer.metadata)))
            except TimeoutError:
                break
            except Replaced:
                if self.routers.is_connected(writer):  # it had the call, and did not answer
                    gone.add(writer.member)
                continue
            except grpc.aio.AioRpcError as failure:
                if failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    break
                error = self.routers.judge(failure, writer, stub)
                if failure.code() not in _AGAIN and not isinstance(error, WrongPeer):
                    raise error from failure
                if not isinstance(error, WrongPeer) and not was_answered(failure):
                    gone.add(writer.member)
            await asyncio.sleep(_BACKOFF)
        raise Unavailable(_NO_ROUTER)

    async def _writer_within(self, seconds: float) -> Router:
        async with asyncio.timeout(seconds):
            return await self.routers.known()

    # -------------------------------------------------------------- the stream

    async def _keep_watching(self) -> None:
        while not self._leaving:
            writer = await self.routers.known()
            self._mirror.begin()
            self._heard = False
            try:
                await self.routers.while_writing(writer, self._watch(writer))
            except Replaced:
                log.info("another router writes, attaching to it")
                continue
            except BrokerError as failure:
                if self._heard and not self._leaving:
                    log.info("topology stream ended, attaching again", reason=failure.text)
            except Exception as fault:  # noqa: BLE001 - a process that no longer follows the topology is of no use
                contained("taking over news of the topology", fault)
            if not self._leaving:
                await asyncio.sleep(_BACKOFF)

    async def _watch(self, writer: Router) -> None:
        stub = self.routers.stub(writer)
        try:
            with unless_given_up():
                async for frame in stub.Watch(self._say(), metadata=writer.metadata):
                    self._heard = True
                    kept = await self._prepare(frame)
                    self._hear(frame)
                    del kept
        except grpc.aio.AioRpcError as failure:
            raise self.routers.judge(failure, writer, stub) from None

    async def _prepare(self, frame: router_pb2.TopologyFrame) -> object:
        """What keeps what the frame wants at hand. A fault in this shows again where the frame is taken."""
        try:
            return await self._ahead(frame) if self._ahead else None
        except Exception as fault:  # noqa: BLE001 - it would come again with each attempt to attach
            return contained("preparing for news of the topology", fault)

    async def _say(self) -> AsyncIterator[router_pb2.WatcherFrame]:
        first = self._frame(beat=monotonic())
        first.MergeFrom(self._introduction)
        yield first
        beat = _Beat(self._wake)
        beat.wait(until_next(self._ttl * _BEAT))
        try:
            while not self._leaving:
                await self._wake.wait()
                self._wake.clear()
                if is_due := beat.is_due:
                    beat.wait(until_next(self._ttl * _BEAT))
                yield self._frame(beat=monotonic() if is_due else 0.0)
        finally:
            beat.cancel()
        yield router_pb2.WatcherFrame(leaving=True)

    def _frame(self, beat: float) -> router_pb2.WatcherFrame:
        self._acknowledged = self.version
        # Rounded down: the place must not seem safe for longer than it is.
        return router_pb2.WatcherFrame(acknowledged=self._acknowledged, beat_ms=int(beat * 1000))

    def _hear(self, frame: router_pb2.TopologyFrame) -> None:
        known = self.version
        if frame.place_ttl_ms:
            self._ttl = frame.place_ttl_ms / 1000
        if self._mirror.take(frame):
            self._synced.set()
        if frame.beat_ms:
            self._heard_beat(frame.beat_ms / 1000)
        if self.version != known:
            self._look_again()
        if self.version != self._acknowledged and not frame.nobody_waits:
            self._wake.set()

    def _look_again(self) -> None:
        newer, self._for_newer = self._for_newer, []
        for each in newer:
            if not each.done():
                each.set_result(None)

    # -------------------------------------------------------------- the place

    def _heard_beat(self, sent: float) -> None:
        had_place = self.has_place()
        self._place_until = max(self._place_until, sent + self._ttl)
        self._placed.set()
        if not had_place and self.has_place():
            for_each("having a place again", self.listeners, lambda listener: listener.on_place())

    async def _keep_place(self) -> None:
        while True:
            silent_at = self._place_until - self._ttl * (1 - _SILENT)
            if monotonic() < silent_at:
                await asyncio.sleep(silent_at - monotonic())
            elif self.has_place():
                await self._prolong()
                await asyncio.sleep(_BACKOFF / 2)
            else:
                self._placed.clear()
                await self._placed.wait()

    async def _prolong(self) -> None:
        """Keeps the place if the router, which has been silent for a while, is gone and no other can write."""
        asked = monotonic()
        # Still having the place after the check means that no router took it before the moment when none could.
        if await self.routers.nobody_writes() and self.has_place() and not self._leaving:
            self._place_until = max(self._place_until, asked + self._ttl)


async def _awaited(call: Awaitable[T]) -> T:
    with unless_given_up():
        return await call
