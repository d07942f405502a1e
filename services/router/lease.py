"""The role lease "router": only its holder writes the topology, and only while the lease cannot have run out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from services.common.clients.leases import Leases
from services.common.clients.routers import ROLE
from services.common.clients.store import StoreClient
from services.common.remedies import SLOW
from services.rpc.store_pb2 import KeepAliveReply

log = structlog.get_logger()

DEPOSED = "it starts again and follows; where this comes again, see that it gets its share of the machine"
"""What an operator does about a router that was away so long that another one writes."""


class Lease:
    """Asked for from `start` on, and kept once it is held; whoever loses it must not act on.

    `on_lost`: another router writes. `on_regained`: it had run out, and nobody took it. `on_store_restart`: the store's
    memory is empty again.
    """

    def __init__(self, store: StoreClient, member: str, address: str, ttl_ms: int) -> None:
        """`address` is where others reach this router."""
        self._leases = Leases(store, store.address, member, ROLE, address, ttl_ms, self)
        self._incarnation: int | None = None
        self._lost = False
        self._held = asyncio.Event()
        self._renewed = asyncio.Event()
        self.epoch = 0
        self.on_lost: Callable[[], None] = _nothing
        self.on_regained: Callable[[], None] = _nothing
        self.on_store_restart: Callable[[], None] = _nothing

    async def start(self) -> None:
        """Returns when the store knows this router; waits for it as long as it takes."""
        await self._leases.start()

    async def stop(self) -> None:
        """Lets the next router begin without waiting; best effort."""
        self._lost = True
        await self._leases.stop()

    def look_again(self) -> None:
        """The lease may be free: asks for it at once."""
        self._leases.refresh()

    async def acquired(self) -> None:
        """Returns when this router is the one that writes."""
        await self._held.wait()

    def holds(self) -> bool:
        """Whether nobody else can have it at this moment."""
        return self.epoch > 0 and not self._lost and self._leases.check()

    def hears_store(self) -> bool:
        """Whether the store has answered within the time that a lease is good for, be there one or not."""
        return self._leases.check()

    async def wait_valid(self) -> None:
        """Returns at once while the lease cannot have run out, else when it has been renewed."""
        while not self.holds():
            self._renewed.clear()
            await self._renewed.wait()

    # -------------------------------------------------------------- the leases say

    def renewed(self, held: dict[str, int], reply: KeepAliveReply) -> None:
        """As LeaseListener says."""
        epoch = held.get(ROLE, 0)
        # One step means that the store gave it again and nobody had it in between.
        if self.epoch and epoch - self.epoch not in (0, 1):
            self._lose()
        elif epoch and not self._lost:
            self.epoch = epoch
            self._held.set()
            self._renewed.set()
        if not self._lost:
            # Also while it is held: a store that was restarted may have to give it again.
            self._leases.acquire([ROLE])
        self._see(reply.incarnation)

    def validity_changed(self, *, valid: bool) -> None:
        """As LeaseListener says."""
        if not self.epoch or self._lost:
            return
        if valid:
            self.on_regained()
        else:
            log.warning("the lease may have run out, declarations and bindings wait until it is renewed", do=SLOW)

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            log.error("another router has the lease, ending", do=DEPOSED)
            self.on_lost()

    def _see(self, incarnation: int) -> None:
        if self._incarnation not in (None, incarnation):
            log.info("store was restarted, its transient records are put again by the router that writes")
            self.on_store_restart()
        self._incarnation = incarnation


def _nothing() -> None:
    """What a router does that follows."""
