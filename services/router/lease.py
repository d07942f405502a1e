"""The role lease "router": only its holder writes the topology."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc.aio
import structlog

from services.common.clock import monotonic
from services.common.errors import Fenced
from services.rpc import store_pb2, store_pb2_grpc

ROLE = "router"
_RETRY = 0.2

log = structlog.get_logger()


class Lease:
    """Acquired once, then kept; whoever loses it must not act on. `on_store_restart`: its memory is empty again."""

    def __init__(
        self,
        store: store_pb2_grpc.StoreAsyncStub,
        member: str,
        address: str,
        ttl_ms: int,
        on_store_restart: Callable[[], None],
    ) -> None:
        self._store = store
        self._member = member
        self._address = address
        self._ttl_ms = ttl_ms
        self._on_store_restart = on_store_restart
        self._until = 0.0
        self._renewed = asyncio.Event()
        self._incarnation: int | None = None
        self.epoch = 0

    async def acquire(self) -> None:
        """Waits for the store, and for a former holder to let go or to run out."""
        said = ""
        while True:
            waits_for = await self._try_acquire()
            if not waits_for:
                return
            if waits_for != said:
                log.info("waiting for the router lease", reason=waits_for)
                said = waits_for
            await asyncio.sleep(_RETRY)

    async def keep(self) -> None:
        """Renews until cancelled; raises Fenced when the lease is somebody else's."""
        while True:
            await asyncio.sleep(self._ttl_ms / 4000)
            try:
                mine = await self._renew()
            except grpc.aio.AioRpcError as failure:
                log.warning("lease not renewed, topology changes wait", reason=failure.details())
                continue
            if mine is None:
                raise Fenced("the router lease went to another router")
            # The store may give it again after its own restart; one step means that nobody had it in between.
            if mine.epoch - self.epoch not in (0, 1):
                raise Fenced("another router held the lease in the meantime")
            self.epoch = mine.epoch

    async def wait_valid(self) -> None:
        """Returns at once while the lease cannot have run out, else when it has been renewed."""
        while monotonic() >= self._until:
            self._renewed.clear()
            await self._renewed.wait()

    async def release(self) -> None:
        """Lets the next router begin without waiting; best effort."""
        self._until = 0.0
        request = store_pb2.KeepAliveRequest(member=self._member, role=ROLE, release=[ROLE], leaving=True)
        try:
            await self._store.KeepAlive(request, timeout=1.0)
        except grpc.aio.AioRpcError as failure:
            log.info("router lease left to run out", reason=failure.details())

    async def _try_acquire(self) -> str:
        """Empty when it is held, else what is in the way."""
        try:
            mine = await self._renew()
        except grpc.aio.AioRpcError as failure:
            return f"store: {failure.details()}"
        if mine is None:
            return "held by another router"
        self.epoch = mine.epoch
        return ""

    async def _renew(self) -> store_pb2.Lease | None:
        sent = monotonic()
        request = store_pb2.KeepAliveRequest(
            member=self._member, role=ROLE, address=self._address, acquire=[ROLE], ttl_ms=self._ttl_ms
        )
        reply = await self._store.KeepAlive(request, timeout=self._ttl_ms / 1000)
        mine = next((lease for lease in reply.leases if lease.name == ROLE and lease.member == self._member), None)
        if mine:
            self._until = sent + reply.ttl_ms / 1000
            self._renewed.set()
        self._see(reply.incarnation)
        return mine

    def _see(self, incarnation: int) -> None:
        if self._incarnation not in (None, incarnation):
            log.info("store was restarted, its transient records are put again")
            self._on_store_restart()
        self._incarnation = incarnation
