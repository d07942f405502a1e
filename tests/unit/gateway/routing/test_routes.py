"""What a gateway remembers of routes is bounded by what it takes of memory, and is right."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.routing import routes as gateway_routes
from services.gateway.routing.routes import RouteCache
from services.gateway.vocabulary import Publish
from services.rpc import router_pb2
from tests.support.messages import kind, published


class Router:
    """Answers with `queues`; needs headers for exchanges whose name begins with h, hands on from those with e.

    Queues of keys that are numbers have that number, and begin with it.
    """

    version = 1

    def __init__(self, queues: int = 1) -> None:
        self.queues = queues
        self.asked = 0
        self.meanwhile = lambda: None
        self.calls: list[int] = []  # words of the keys of each

    def has_place(self) -> bool:
        return True

    async def route(self, messages: list[Any], _metadata: object = ()) -> router_pb2.RouteReply:
        self.asked += len(messages)
        self.meanwhile()
        self.calls.append(sum(1 + each.routing_key.count(".") for each in messages))
        return router_pb2.RouteReply(routed=map(self._routed, messages), version=1)

    def _routed(self, message: Any) -> router_pb2.Routed:
        keys = (message.routing_key, *message.more_keys)
        ids = {int(key) + at for key in keys if key.isdecimal() for at in range(self.queues)} or range(self.queues)
        return router_pb2.Routed(
            queue_ids=ids,
            needs_headers=message.exchange.startswith("h"),
            passed_on=message.exchange.startswith("e"),
        )


def publish(exchange: str, key: str, *properties: bytes, more: tuple[str, ...] = ()) -> Publish:
    its = list(properties) or [b""]
    return published([b""] * len(its), kind(exchange, key, more_keys=more), properties=its)


def found(routes: RouteCache, run: Publish) -> set[int] | None:
    targets = routes.find("/", run)
    return None if targets is None else set(targets[0])


async def answered(routes: RouteCache, run: Publish) -> set[int]:
    return set((await routes.ask("/", run)).targets[0])


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


class Once(dict[bytes, Any]):
    """What is looked up, and never walked through."""

    def __iter__(self) -> Any:
        raise AssertionError("all that is known was looked at")

    keys = items = values = copy = __iter__


async def test_more_properties_cost_nothing_of_what_is_known() -> None:
    """However many properties of a key are known, another one is asked for and remembered by itself."""
    routes = RouteCache(cast("Any", Router()))
    await ask(routes, publish("h", "key", b"1", b"2"))
    route = routes._exchanges["/", "h"]["key"]
    route.by_properties = Once(route.by_properties or {})
    assert await answered(routes, publish("h", "key", b"2", b"3")) == {0}
    assert [each in route.by_properties for each in (b"1", b"2", b"3", b"4")] == [True, True, True, False]


async def test_properties_of_a_key_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number too: beyond it they are remembered anew."""
    monkeypatch.setattr(gateway_routes, "_REMEMBERED", 10)
    routes = RouteCache(cast("Any", Router()))
    for number in range(100):
        await ask(routes, publish("h", "key", b"%d" % number))
        assert len(routes._exchanges["/", "h"]["key"].by_properties or ()) <= 10
        assert counted(routes) == routes.size


@pytest.mark.parametrize("forgotten", [dict[Any, Any].clear, lambda known: known.update({b"1": (7,)})])
async def test_what_was_known_when_it_was_asked_answers(forgotten: Any) -> None:
    """However remembered routes change while the router is asked, every message gets an answer."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    await ask(routes, publish("h", "key", b"1"))
    router.meanwhile = lambda: forgotten(routes._exchanges["/", "h"]["key"].by_properties)
    answer = await routes.ask("/", publish("h", "key", b"1", b"2"))
    assert answer.targets == [(0,), (0,)]


async def test_many_keys_go_where_each_goes() -> None:
    """One question teaches where the keys lead alone; others of them need none, and a forgotten key does."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    assert await answered(routes, publish("x", "1", more=("2", "3"))) == {1, 2, 3}
    assert router.asked == 4
    assert found(routes, publish("x", "3", more=("1",))) == {1, 3}
    assert found(routes, publish("x", "2")) == {2}
    assert found(routes, publish("x", "2", more=("4",))) is None
    assert await answered(routes, publish("x", "2", more=("4",))) == {2, 4}
    assert router.asked == 6
    routes.forget(router_pb2.Forget(virtual_host="/", exchange="x", routing_key="3"))
    assert found(routes, publish("x", "1", more=("3",))) is None
    assert found(routes, publish("x", "1", more=("2",))) == {1, 2}


@pytest.mark.parametrize("exchange", ["e", "h"])
async def test_many_keys_that_do_not_add_up(exchange: str) -> None:
    """Where another exchange or headers have a say the router is asked each time, and for nothing else."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    run = publish(exchange, "1", more=("2",))
    await ask(routes, run)
    router.asked = 0
    for _ in range(3):
        assert routes.find("/", run) is None
        assert await answered(routes, run) == {1, 2}
    assert router.asked == 3
    assert found(routes, publish(exchange, "1")) == ({1} if exchange == "e" else None)


async def test_very_many_keys_are_bounded() -> None:
    """What one message teaches is, so that the rest of a question is no longer than the message itself."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    run = publish("x", "0", more=tuple(map(str, range(1, 10_000))))
    for times in range(1, 4):
        assert len(await answered(routes, run)) == 10_000
        assert router.asked <= times * 65
    assert counted(routes) == routes.size == sum(routes._sizes.values())


@pytest.mark.parametrize("exchange", ["x", "h"])
async def test_a_router_is_asked_little_at_once(exchange: str) -> None:
    """However many new keys of many words lie in one read: all are answered, as each alone would be."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    keys = [".".join(["a"] * 124) + f".{number}" for number in range(100)] + [str(number) for number in range(700)]
    run = published([b""] * len(keys), *[kind(exchange, key) for key in keys])
    answer = await routes.ask("/", run)
    assert [set(each) for each in answer.targets] == [{0}] * 100 + [{number} for number in range(700)]
    assert max(router.calls) <= 500
    assert router.asked == len(keys)
    assert routes.find("/", run) == answer.targets


async def test_headers_count_where_a_router_is_asked() -> None:
    """Long properties are looked at few at a time, one that is longer than any portion alone."""
    router = Router()
    routes = RouteCache(cast("Any", router))
    await answered(routes, publish("h", "key"))
    properties = [b"%03d" % number + bytes(3000) for number in range(6)] + [bytes(100_000)]
    await answered(routes, publish("h", "key", *properties))
    assert router.calls[1:] == [2, 2, 2, 1]


async def test_portions_under_way() -> None:
    """Four together: each takes the way to the router and back, and it looks at other clients' in between."""
    router, under_way, most = Router(), 0, 0
    answer = router.route

    async def route(messages: list[Any], metadata: object = ()) -> router_pb2.RouteReply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return await answer(messages, metadata)

    router.route = route  # type: ignore[method-assign]
    keys = [f"{number}" for number in range(3000)]
    run = published([b""] * len(keys), *[kind("", key) for key in keys])
    answers = await RouteCache(cast("Any", router)).ask("/", run)
    assert answers.targets == [(number,) for number in range(3000)]
    assert most == 4


_NAMES = st.sampled_from(["a", "b", "e", "h1", "h2"])
_KEYS = st.sampled_from(["", "k", "l"])
_PROPERTIES = st.lists(st.sampled_from([b"", b"p", b"q", b"r"]), min_size=1, max_size=3)
_STEPS = st.one_of(
    st.tuples(st.just("ask"), _NAMES, _KEYS, _PROPERTIES),
    st.tuples(st.just("ask many"), _NAMES, _KEYS, st.lists(_KEYS, min_size=1).map(tuple)),
    st.tuples(st.just("forget"), _NAMES, _KEYS, st.booleans()),
    st.tuples(st.just("forget all"), _NAMES, _KEYS, st.booleans()),
)


@pytest.mark.fuzz
@given(st.lists(_STEPS, max_size=30))
def test_the_count_is_right(steps: list[Any]) -> None:
    """However routes are added, extended and forgotten, the sum is that of those that are kept."""
    routes = RouteCache(cast("Any", Router()))
    for what, exchange, key, more in steps:
        if what == "ask":
            asyncio.run(ask(routes, publish(exchange, key, *more)))
        elif what == "ask many":
            asyncio.run(ask(routes, publish(exchange, key, more=more)))
        elif what == "forget":
            routes.forget(router_pb2.Forget(virtual_host="/", exchange=exchange, routing_key=key, all_keys=more))
        else:
            routes.forget_all()
        assert counted(routes) == routes.size == sum(routes._sizes.values())
