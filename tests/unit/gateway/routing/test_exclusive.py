"""Exclusive queues of connections that are gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

from services.common.errors import BrokerError, InternalError, Unavailable
from services.gateway.routing.exclusive import ExclusiveQueues
from services.rpc import router_pb2
from tests.simulation.world import World

_MANY = 300


class Router:
    """Answers `refusals` first, by connection; then it does what it is asked."""

    def __init__(self, refusals: dict[str, list[BrokerError]]) -> None:
        self.refusals = refusals
        self.asked: list[str] = []
        self.closed: list[str] = []
        self.most = self._now = 0

    async def change(self, request: router_pb2.ChangeRequest) -> router_pb2.ChangeReply:
        assert request.HasField("close_connection")
        self.asked.append(request.connection)
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0.01)
        self._now -= 1
        if refusals := self.refusals.get(request.connection):
            raise refusals.pop(0)
        self.closed.append(request.connection)
        return router_pb2.ChangeReply()


def _connection(name: str) -> Any:
    return SimpleNamespace(name=name, owns_queues=True)


async def _ended(router: Router, names: list[str], seconds: float) -> None:
    queues = ExclusiveQueues(router)
    connections = [_connection(name) for name in names]
    await asyncio.gather(*map(queues.delete, connections))
    assert not any(connection.owns_queues for connection in connections)
    router.most = 0
    await asyncio.sleep(seconds)
    await queues.stop()


def test_at_once() -> None:
    """Where the router answers it is asked once."""
    router = Router({})
    World(1).run(_ended(router, ["a"], 100))
    assert router.asked == router.closed == ["a"]


def test_until_the_router_answers() -> None:
    """A router that is away for longer than a request waits is asked again, a bounded number of requests at a time."""
    names = [f"c{number}" for number in range(_MANY)]
    router = Router({name: [Unavailable("away")] * 5 for name in names})
    World(1).run(_ended(router, names, 60))
    assert sorted(router.closed) == sorted(names)
    assert Counter(router.asked[_MANY:]) == dict.fromkeys(names, 5)
    assert router.most == 100


def test_one_that_cannot_be_done() -> None:
    """What the router fails at keeps no others from it, and is asked for seldom."""
    router = Router({"bad": [InternalError("two routers went away")] * 100, "good": [Unavailable("away")]})
    World(1).run(_ended(router, ["bad", "good"], 500))
    assert router.closed == ["good"]
    assert 7 <= router.asked.count("bad") <= 12


def test_one_that_ends_later() -> None:
    """After all has been deleted, what is left then is deleted too."""

    async def twice() -> None:
        router = Router({"a": [Unavailable("away")], "b": [Unavailable("away")]})
        queues = ExclusiveQueues(router)
        for name in ("a", "b"):
            await queues.delete(_connection(name))
            await asyncio.sleep(5)
            assert router.closed[-1] == name
        await queues.stop()

    World(1).run(twice())
