from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from types import SimpleNamespace

import pytest

from services.common import plugins
from services.common.clients.topology import TopologyClient
from services.common.config import Settings
from services.common.message import arguments
from services.router.service import Service
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.topology import Topology
from services.rpc import router_pb2
from tests.support.memory_store import MemoryStore

PLACE_TTL_MS = 400


def request(kind, connection="c1", virtual_host="/", **fields):
    """A ChangeRequest of one kind; `arguments` as a dict."""
    if "arguments" in fields:
        fields["arguments"] = arguments.dump(fields["arguments"])
    message = {
        "bind": router_pb2.Bind,
        "unbind": router_pb2.Bind,
    }.get(kind) or getattr(router_pb2, "".join(word.capitalize() for word in kind.split("_")))
    return router_pb2.ChangeRequest(virtual_host=virtual_host, connection=connection, **{kind: message(**fields)})


def new_topology() -> Topology:
    kinds = Kinds(
        {name: plugins.load("exchange_types", name) for name in plugins.names("exchange_types")},
        ("classic",),
        ("drop-head", "reject-publish", "reject-publish-dlx"),
    )
    ids = count(1)
    return Topology(kinds, 64, lambda: next(ids), lambda: "r" * 22)


class Bench:
    """A topology with "/" and short ways to change it and to ask it."""

    def __init__(self) -> None:
        self.topology = new_topology()
        self.effects = Effects()
        self.do("create_virtual_host", name="/")

    def do(self, kind, connection="c1", virtual_host="/", **fields):
        self.effects = Effects()
        return self.topology.change(request(kind, connection, virtual_host, **fields), self.effects)

    def queue(self, name, **fields):
        return self.do("declare_queue", name=name, **fields).queue

    def exchange(self, name, type="direct", **fields):
        return self.do("declare_exchange", name=name, type=type, **fields)

    def bind(self, source, destination, key="", **fields):
        return self.do("bind", source=source, destination=destination, routing_key=key, **fields)

    def route(self, exchange, key="", headers=None):
        return self.topology.route("/", exchange, key, lambda: headers or {})

    def names(self, exchange, key="", headers=None):
        return {self.topology.queues[each].name for each in self.route(exchange, key, headers).queue_ids}


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
async def cluster(tmp_path):
    """A store, a router, and ways to make watchers; everything is stopped afterwards."""
    settings = Settings(data=tmp_path, lease_ttl_ms=400, place_ttl_ms=PLACE_TTL_MS)
    settings.run_folder.mkdir(parents=True)
    store = MemoryStore()
    await store.start(settings.address_of("store"))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.stop)
        lost = asyncio.Event()
        routers = []

        async def start_router():
            router = Service(settings, on_lost=lost.set)
            await router.start()
            routers.append(router)

        async def stop_router():
            while routers:
                await routers.pop().stop()

        stack.push_async_callback(stop_router)

        async def watch(member, role="gateway", prefix=None):
            client = TopologyClient(settings.address_of("router"), member, role, prefix or f"{member}/")
            await client.start()
            stack.push_async_callback(client.stop)
            return client

        yield SimpleNamespace(
            settings=settings,
            store=store,
            start_router=start_router,
            stop_router=stop_router,
            watch=watch,
            lost=lost,
            request=request,
        )


@pytest.fixture
async def until():
    """Waits until a condition holds, or fails after five seconds."""

    async def wait(condition):
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110 - a test polls
                await asyncio.sleep(0.01)

    return wait
