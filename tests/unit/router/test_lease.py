"""The router's lease, over a store that says what the test wants."""

from __future__ import annotations

import asyncio
from typing import Any

from services.router.lease import Lease
from services.rpc import store_pb2 as pb


class _Store:
    address = "unix:store"

    def __init__(self) -> None:
        self.epoch, self.holder = 1, "me"
        self.requests: list[pb.KeepAliveRequest] = []

    async def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109
        await asyncio.sleep(0)
        self.requests.append(request)
        reply = pb.KeepAliveReply(ttl_ms=200, incarnation=1)
        reply.leases.add(name="router", epoch=self.epoch, member=self.holder)
        return reply


async def test_a_router_that_has_lost_it_does_not_ask_for_it_again() -> None:
    """It ends; were it given the lease meanwhile, no router would write until it has."""
    store: Any = _Store()
    lease, lost = Lease(store, "me", "unix:router", 200), asyncio.Event()
    lease.on_lost = lost.set
    await lease.start()
    await lease.acquired()
    store.epoch, store.holder = 2, "other"
    await lost.wait()
    asked = len(store.requests)
    while len(store.requests) < asked + 3:
        await asyncio.sleep(0.01)
    assert not any(request.acquire for request in store.requests[asked:])
    await lease.stop()
