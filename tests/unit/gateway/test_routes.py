"""What a gateway remembers of routes is bounded by what it takes of memory, and is right."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.message import Attributes
from services.gateway.routes import RouteCache
from services.gateway.vocabulary import Publish
from services.rpc import router_pb2


class Router:
    """Answers with `queues`; needs headers for exchanges whose name begins with h."""

    version = 1

    def __init__(self, queues: int = 1) -> None:
        self.queues = queues
        self.asked = 0

    def has_place(self) -> bool:
        return True

    async def route(self, messages: list[Any], _metadata: object) -> router_pb2.RouteReply:
        self.asked += len(messages)
        routed = [
            router_pb2.Routed(queue_ids=range(self.queues), needs_headers=message.exchange.startswith("h"))
            for message in messages
        ]
        return router_pb2.RouteReply(routed=routed, version=1)


def publish(exchange: str, key: str, *properties: bytes) -> Publish:
    its = list(properties) or [b""]
    return Publish(1, exchange, key, False, False, "amqp-0-9", Attributes(), its, [b""] * len(its))


async def ask(routes: RouteCache, run: Publish) -> None:
    if routes.find("/", run) is None:
        await routes.ask("/", run)


def counted(routes: RouteCache) -> int:
    return sum(route.size for known in routes._exchanges.values() for route in known.values())


async def test_wide_routes_are_bounded() -> None:
    """Keys of an exchange with a thousand queues take a thousand times as much, and are forgotten before others."""
    router = Router(1000)
    routes = RouteCache(cast("Any", router))
    routes._limit = 1 << 20
    router.queues = 1
    await ask(routes, publish("small", "key"))
    router.queues = 1000
    for number in range(500):
        await ask(routes, publish("wide", str(number)))
        assert counted(routes) == routes.size <= routes._limit
    assert routes.find("/", publish("small", "key"))


async def test_headers_of_many_keys_are_bounded() -> None:
    """A key with many properties, and many keys with few, take no more than all may."""
    routes = RouteCache(cast("Any", Router()))
    routes._limit = 1 << 20
    for number in range(3000):
        properties = [b"%d %d" % (number, each) + bytes(900) for each in range(2)]
        await ask(routes, publish("h", str(number % 10), *properties))
        assert counted(routes) == routes.size <= routes._limit


_NAMES = st.sampled_from(["a", "b", "h1", "h2"])
_KEYS = st.sampled_from(["", "k", "l"])
_PROPERTIES = st.lists(st.sampled_from([b"", b"p", b"q", b"r"]), min_size=1, max_size=3)
_STEPS = st.one_of(
    st.tuples(st.just("ask"), _NAMES, _KEYS, _PROPERTIES),
    st.tuples(st.just("forget"), _NAMES, _KEYS, st.booleans()),
    st.tuples(st.just("forget all"), _NAMES, _KEYS, st.booleans()),
)


@settings(max_examples=200)
@given(st.lists(_STEPS, max_size=30))
def test_the_count_is_right(steps: list[Any]) -> None:
    """However routes come, are added to and are forgotten, the sum is that of what is there."""
    routes = RouteCache(cast("Any", Router()))
    for what, exchange, key, more in steps:
        if what == "ask":
            asyncio.run(ask(routes, publish(exchange, key, *more)))
        elif what == "forget":
            routes.forget(router_pb2.Forget(virtual_host="/", exchange=exchange, routing_key=key, all_keys=more))
        else:
            routes.forget_all()
        assert counted(routes) == routes.size == sum(routes._sizes.values())
