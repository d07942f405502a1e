"""The routers, from the store's lease table: the one that writes, and those that evaluate."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from operator import call
from typing import TYPE_CHECKING, Any, TypeVar, cast

import grpc.aio

from services.common.clients.peer import Peer
from services.common.clients.reachable import is_gone
from services.common.clients.store import StoreClient
from services.common.containment import for_each
from services.common.errors import BrokerError, Unavailable
from services.common.grpc_errors import from_rpc
from services.common.runtime import Tasks
from services.rpc.router_pb2_grpc import RouterStub
from services.rpc.store_pb2 import LeaseTable

if TYPE_CHECKING:
    from services.rpc.router_pb2_grpc import RouterAsyncStub

ROLE = "router"
MEMBER_KEY = "hopline-member"  # in a call's metadata: the member that it is meant for
# Of a change: the watcher that asks for it, and waits itself until it routes by the answer's version.
ASKER_KEY = "hopline-asker"

_LINGER = 30.0  # seconds
_AT_ONCE = 0.1  # the lease table tells of a router that does not answer at all sooner than a connection does

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Router:
    """One run of a router."""

    member: str
    address: str

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Goes with every call: another router that has its address by now refuses the call."""
        return ((MEMBER_KEY, self.member),)


class Replaced(Exception):
    """Another router writes by now."""


class _Waits:
    """The present task waits for what `writer` answers. As asyncio.timeout it needs no task of its own for that."""

    def __init__(self, writer: Router) -> None:
        self.writer = writer
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._before = self._task.cancelling()
        self._is_cancelled = False

    def cancel(self) -> None:
        """It need not wait any more. Done once."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    def is_cancelled_from_without(self) -> bool:
        """Whether the task was asked to end, by others than `cancel`."""
        return self._task.cancelling() - self._is_cancelled > self._before

    def end(self) -> None:
        """Takes `cancel` back."""
        if self._is_cancelled:
            self._task.uncancel()


class Routers:
    """Follows the leases between `start` and `stop`; created in a running loop.

    `listeners` are called after each change. `name`, the asking process's, spreads questions over the routers.
    """

    def __init__(self, store: StoreClient, name: str) -> None:
        self.writer: Router | None = None  # None: no router holds the lease at the moment
        self.listeners: list[Callable[[], None]] = []
        self._last: Router | None = None  # the last router known to write
        self._store = store
        self._spread = zlib.crc32(name.encode())
        self._members: dict[str, str] = {}
        self._serving: list[Router] = []
        self._changed = asyncio.Event()
        self._peers: dict[str, Peer[RouterAsyncStub]] = {}
        self._for_writer: dict[_Waits, None] = {}  # what only one that writes can answer
        self._tasks = Tasks()

    def start(self) -> None:
        """Begins to follow."""
        self._tasks.start(self._follow(), "routers")

    async def stop(self) -> None:
        """Ends all calls."""
        await self._tasks.stop()
        for peer in self._peers.values():
            await peer.close()

    def members(self) -> dict[str, str]:
        """The routers believed alive, with their addresses, in the order in which they came."""
        return self._members

    async def known(self) -> Router:
        """Waits until a router writes, and gives it."""
        while self.writer is None:
            await self._changed.wait()
        return self.writer

    def stub(self, router: Router) -> RouterAsyncStub:
        """A stub to call it by, with its metadata."""
        peer = self._peers.get(router.address)
        if peer is None:
            peer = self._peers[router.address] = Peer(router.address, RouterStub)
        return peer.stub

    def judge(self, failure: BrokerError | grpc.aio.AioRpcError, router: Router, stub: RouterAsyncStub) -> BrokerError:
        """The BrokerError for a failure of a call by the router's `stub`; a wrong peer's ends the connection."""
        peer = self._peers.get(router.address)
        return peer.judge(failure, stub) if peer else from_rpc(failure)

    def is_connected(self, router: Router) -> bool:
        """Whether calls reach it: it may have been gone before it was called."""
        peer = self._peers.get(router.address)
        return peer is not None and peer.is_connected

    def evaluator(self) -> Router | None:
        """The router that this process asks where messages go; other processes ask others."""
        return next(iter(self.evaluators()), self.writer)

    def evaluators(self) -> list[Router]:
        """All that can be asked where messages go, `evaluator` first."""
        start = self._spread % max(len(self._serving), 1)
        return self._serving[start:] + self._serving[:start]

    async def while_writing(self, writer: Router, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; cancels it and raises Replaced when another router than `writer` writes."""
        if self._is_replaced(writer):
            work.close()
            raise Replaced
        waits = _Waits(writer)
        self._for_writer[waits] = None
        try:
            return await work
        except asyncio.CancelledError:
            if waits.is_cancelled_from_without():
                raise
            raise Replaced from None  # or its channel was closed under it
        finally:
            del self._for_writer[waits]
            waits.end()

    def _is_replaced(self, writer: Router) -> bool:
        return self.writer is not None and self.writer != writer

    async def nobody_writes(self) -> bool:
        """Whether, at some moment after the call, no router could answer a change.

        That is so when no router holds the lease, or its holder's process is gone: the next router begins later. When
        the store's process is gone, no router can be granted the lease either. Of a process on another machine that is
        never certain, even when its address refuses a connection.
        """
        try:
            holder = _holder(await self._store.leases(ROLE))
        except Unavailable:
            return await self._has_ended(self._last) and await is_gone(self._store.address)
        return holder is None or (holder == self._last and await self._has_ended(holder))

    @staticmethod
    async def _has_ended(router: Router | None) -> bool:
        return router is not None and await is_gone(router.address, _AT_ONCE)

    async def _follow(self) -> None:
        async for table in self._store.watch_leases(ROLE):
            self.writer = _holder(table)
            self._last = self.writer or self._last
            self._members = {member.member: member.address for member in table.members if member.address}
            self._serving = [Router(*each) for each in sorted(self._members.items())]
            self._changed.set()
            self._changed = asyncio.Event()
            for waits in self._for_writer:
                if self._is_replaced(waits.writer):
                    waits.cancel()
            for_each("hearing of the routers", self.listeners, call)
            for address in self._peers.keys() - self._addresses():
                self._tasks.start(self._close_later(address), "former router")

    def _addresses(self) -> set[str]:
        return {router.address for router in [*self._serving, self.writer, self._last] if router}

    async def _close_later(self, address: str) -> None:
        """Closes the channel to a router that is gone, which would reconnect for ever; calls have ended by then."""
        await asyncio.sleep(_LINGER)
        if address not in self._addresses() and (peer := self._peers.pop(address, None)):
            await peer.close()


def _holder(table: LeaseTable) -> Router | None:
    return next((Router(lease.member, lease.address) for lease in table.leases if lease.name == ROLE), None)
