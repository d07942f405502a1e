"""The lease "ledger": of several mgmt processes, one files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.common.clients.leases import Leases
from services.common.clients.store import StoreClient
from services.rpc.store_pb2 import KeepAliveReply

ROLE = "ledger"


class LeaseEnded(Exception):
    """Another process may file now."""


class FilingLease:
    """Asked for again and again, for ever."""

    def __init__(self, store: StoreClient, member: str, ttl_ms: int, lost: Callable[[], None]) -> None:
        """`lost` is called whenever the store says that another process files."""
        self._lost = lost
        self._answered = False
        self.is_anothers = False
        """Whether another process files, as the store said last."""
        self._leases = Leases(store, store.address, member, ROLE, "", ttl_ms, self)
        self._epoch = 0  # of the lease that is held; 0: none is
        self._term = 0  # the epoch by which this process files
        self._held = asyncio.Event()

    async def start(self) -> None:
        """Returns when the store knows this process; waits for it as long as it takes."""
        await self._leases.start()

    async def stop(self) -> None:
        """Lets another one file without waiting; best effort."""
        await self._leases.stop()

    @property
    def in_doubt(self) -> bool:
        """Whether nobody can say who files: the store does not answer any more."""
        return self._answered and not self._leases.check()

    def holds(self) -> bool:
        """Whether no other process can file at this moment, or could have filed since `held` returned."""
        return self._term == self._epoch != 0 and self._leases.check()

    def require(self) -> None:
        """Raises LeaseEnded unless `holds`."""
        if not self.holds():
            raise LeaseEnded("the lease has ended")

    async def held(self) -> None:
        """Returns when this process is the one that files; what it has begun before counts no more."""
        await self._held.wait()
        self._term = self._epoch

    # -------------------------------------------------------------- the leases say

    def renewed(self, held: dict[str, int], reply: KeepAliveReply) -> None:
        """As LeaseListener says."""
        self._answered = True
        # Also while it is held: a store that was restarted may have to give it again.
        self._leases.acquire([ROLE])
        self._epoch = held.get(ROLE, 0)
        self._tell(self._epoch > 0)
        nobodys_or_ours = {"", self._leases.member}
        self.is_anothers = any(one.name == ROLE and one.member not in nobodys_or_ours for one in reply.leases)
        if self.is_anothers:
            self._lost()

    def validity_changed(self, *, valid: bool) -> None:
        """As LeaseListener says."""
        self._tell(valid and self._epoch > 0)

    def _tell(self, held: bool) -> None:
        if held:
            self._held.set()
        else:
            self._held.clear()
