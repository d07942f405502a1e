"""What a router says of queues that are spared what their consumers publish, a gateway remembers with the route."""

from __future__ import annotations

from typing import Any, cast

from services.common.topology.targets import NotLocal
from services.gateway.operations import own
from services.gateway.routing.routes import RouteCache
from services.rpc import router_pb2
from tests.unit.gateway.routing.test_routes import Router, publish


class Sparing(Router):
    """The queue 0 is spared."""

    def _routed(self, message: Any) -> router_pb2.Routed:
        routed = super()._routed(message)
        routed.not_local.append(0)
        return routed


async def test_it_is_remembered() -> None:
    """By a key, by what is in the headers, and by several keys, which do not add up then."""
    router = Sparing(2)
    routes = RouteCache(cast("Any", router))
    for exchange, more in (("d", ()), ("h", ()), ("d", ("l",))):
        for _ in range(2):
            run = publish(exchange, "k", b"properties", more=more)
            targets = routes.find("/", run) or (await routes.ask("/", run)).targets
            assert targets == [NotLocal((0, 1), {0})]
    assert routes.find("/", publish("d", "k", b"properties", more=("l",))) is None


def test_who_consumes_there() -> None:
    """It goes nowhere where its connection consumes, and others' messages are left as they are."""
    some = [NotLocal((1, 2), {1}), (3,), NotLocal((1, 2), {1})]

    def session(*queue_ids: int) -> Any:
        its = {str(each): type("Consumer", (), {"queue_id": each}) for each in queue_ids}
        return type("Session", (), {"consumers": its})

    assert own.not_local(some, {1: session()}) is some
    assert own.not_local([(3,)], {1: session(3)}) == [(3,)]
    assert own.not_local(some, {1: session(), 2: session(1, 3)}) == [(2,), (3,), (2,)]
    assert own.not_local(some, {1: session(2)}) == [(1, 2), (3,), (1, 2)]
