from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.config import Settings
from services.router.service import Service
from services.router.watcher_presence import WatcherPresence
from services.router.watchers import ExpectedWatcher
from tests.support.memory_store import MemoryStore
from tests.support.topology_bench import Bench, request


@pytest.fixture
def ttl_ms() -> int:
    """For how long a lease and a place are good: short, for tests that wait until they are lost."""
    return 400


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
async def cluster(tmp_path: Any, ttl_ms: int) -> AsyncIterator[SimpleNamespace]:
    """A store, a router, and ways to make watchers; everything is stopped afterwards."""
    settings = Settings(data=tmp_path, lease_ttl_ms=ttl_ms, place_ttl_ms=ttl_ms)
    settings.run_folder.mkdir(parents=True)
    store = MemoryStore()
    await store.start(settings.address_of("store"))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.stop)
        store_client = StoreClient(settings.address_of("store"))
        stack.push_async_callback(store_client.close)
        lost = asyncio.Event()
        routers = []

        async def start_router(name: str = "router") -> Service:
            router = Service(settings, name, on_lost=lost.set)
            await router.start()
            routers.append(router)
            return router

        async def stop_router() -> None:
            while routers:
                await routers.pop().stop()

        async def stop_one(router: Service) -> None:
            routers.remove(router)
            await router.stop()

        stack.push_async_callback(stop_router)

        async def watch(member: Any, role: Any = "gateway", prefix: Any = None) -> TopologyClient:
            client = TopologyClient(store_client, member, role, prefix or f"{member}/")
            await client.start()
            stack.push_async_callback(client.stop)
            return client

        yield SimpleNamespace(
            settings=settings,
            store=store,
            store_client=store_client,
            start_router=start_router,
            stop_router=stop_router,
            stop_one=stop_one,
            watch=watch,
            lost=lost,
            request=request,
        )


@pytest.fixture
def lost_places(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Watchers that have lost their places so far → why."""
    lost: dict[str, str] = {}
    lose = WatcherPresence.lose

    async def note(self: WatcherPresence, places: list[ExpectedWatcher], reason: str) -> None:
        lost.update({place.member: reason for place in places})
        await lose(self, places, reason)

    monkeypatch.setattr(WatcherPresence, "lose", note)
    return lost


@pytest.fixture
async def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits until a condition holds, or fails after a minute."""

    async def wait(condition: Any) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)

    return wait
