from __future__ import annotations

import random
from typing import Any

import pytest

from services.common.errors import NotFound
from services.common.message import arguments
from services.common.topology.message import OfHeaders
from services.router.topology.explain import Explanation, Via, explain
from tests.support.topology_bench import Bench


def _explain(
    bench: Bench, exchange: str, key: str = "", headers: dict[str, Any] | None = None, *more: str
) -> Explanation:
    return explain(bench.topology.virtual_hosts["/"], exchange, (key, *more), OfHeaders(headers or {}))


def _named(bench: Bench, destination: int | str) -> str:
    return destination if isinstance(destination, str) else bench.topology.queues[destination].name


def _hops(bench: Bench, explanation: Explanation) -> list[tuple[str, Via, str, str]]:
    """(from, how, by which key, to)."""
    return [
        (visit.name, hop.via, hop.binding.routing_key, _named(bench, hop.binding.destination))
        for visit in explanation.visits
        for hop in visit.hops
    ]


def test_direct(bench: Bench) -> None:
    """Of a direct exchange's bindings, those with the key are told."""
    for name in ("a", "b", "c"):
        bench.queue(name)
        bench.bind("amq.direct", name, "k" if name < "c" else "other")
    bench.bind("amq.direct", "a", "other")
    explanation = _explain(bench, "amq.direct", "k")
    assert _hops(bench, explanation) == [
        ("amq.direct", Via.BINDING, "k", "a"),
        ("amq.direct", Via.BINDING, "k", "b"),
    ]
    assert [_named(bench, queue) for queue in explanation.queue_ids] == ["a", "b"]


def test_many_keys(bench: Bench) -> None:
    """Each binding that one of the keys matches is told; a queue that goes by its name with that one."""
    for name in ("a", "b", "c"):
        bench.queue(name)
        bench.bind("amq.direct", name, f"to-{name}")
    explanation = _explain(bench, "amq.direct", "to-c", {}, "none", "to-a")
    assert _hops(bench, explanation) == [
        ("amq.direct", Via.BINDING, "to-a", "a"),
        ("amq.direct", Via.BINDING, "to-c", "c"),
    ]
    implied = _hops(bench, _explain(bench, "", "b", {}, "none", "a"))
    assert implied == [("", Via.IMPLIED, "b", "b"), ("", Via.IMPLIED, "a", "a")]


def test_fanout(bench: Bench) -> None:
    """Every binding of a fanout exchange is shown, with any key."""
    bench.queue("a")
    bench.bind("amq.fanout", "a", "x")
    bench.bind("amq.fanout", "a", "y")
    explanation = _explain(bench, "amq.fanout", "z")
    assert [hop[2] for hop in _hops(bench, explanation)] == ["x", "y"]
    assert len(explanation.queue_ids) == 1


def test_topic(bench: Bench) -> None:
    """Every pattern that matches is told, also several that lead to one queue, and none that does not."""
    bench.queue("a")
    for pattern in ("eu.*", "#", "eu.#", "us.*", "*"):
        bench.bind("amq.topic", "a", pattern)
    assert [hop[2] for hop in _hops(bench, _explain(bench, "amq.topic", "eu.new"))] == ["eu.*", "#", "eu.#"]


def test_headers(bench: Bench) -> None:
    """The arguments of the bindings that match are told; values of other types do not match."""
    bench.queue("a")
    every = {"x-match": "all", "region": "eu", "size": 3}
    some = {"x-match": "any", "region": "us", "size": 3}
    for table in (every, some):
        bench.bind("amq.headers", "a", arguments=table)
    [visit] = _explain(bench, "amq.headers", "k", {"region": "eu", "size": 3}).visits
    assert [arguments.load(hop.binding.arguments) for hop in visit.hops] == [every, some]
    assert _explain(bench, "amq.headers", "k", {"region": "eu", "size": "3"}).queue_ids == ()


def test_default_exchange(bench: Bench) -> None:
    """The default exchange leads to the queue of that name by an implicit binding."""
    bench.queue("a")
    assert _hops(bench, _explain(bench, "", "a")) == [("", Via.IMPLIED, "a", "a")]


def test_nothing_matches(bench: Bench) -> None:
    """An exchange from which nothing leads on is told as such."""
    [visit] = _explain(bench, "amq.direct", "k").visits
    assert (visit.name, visit.hops) == ("amq.direct", ())


def test_alternate_exchange(bench: Bench) -> None:
    """What no binding matches goes on to the alternate exchange, also when that does not exist."""
    bench.queue("q")
    bench.exchange("other", "fanout")
    bench.bind("other", "q")
    bench.exchange("first", arguments={"alternate-exchange": "other"})
    bench.exchange("second", arguments={"alternate-exchange": "none"})
    assert _hops(bench, _explain(bench, "first", "k")) == [
        ("first", Via.ALTERNATE, "", "other"),
        ("other", Via.BINDING, "", "q"),
    ]
    visits = _explain(bench, "second", "k").visits
    assert [(visit.name, visit.exchange is None) for visit in visits] == [("second", False), ("none", True)]


def test_circle(bench: Bench) -> None:
    """Exchanges that are bound in a circle are each visited once; the binding that closes it is told."""
    bench.queue("q")
    for name in ("a", "b"):
        bench.exchange(name, "fanout")
    bench.bind("a", "b", to_exchange=True)
    bench.bind("b", "a", to_exchange=True)
    bench.bind("b", "q")
    assert [(hop[0], hop[3]) for hop in _hops(bench, _explain(bench, "a"))] == [("a", "b"), ("b", "a"), ("b", "q")]


def test_unknown_exchange(bench: Bench) -> None:
    """An exchange that is not there is not found."""
    with pytest.raises(NotFound, match="no exchange 'none' in vhost '/'"):
        _explain(bench, "none")


@pytest.mark.parametrize("seed", range(20))
def test_as_routed(bench: Bench, seed: int) -> None:
    """In any topology, the explanation leads to the queues that the router routes to."""
    chance = random.Random(seed)
    keys = ["a", "b", "a.b", "*", "#", "a.#", ""]
    exchanges = [f"x{number}" for number in range(6)]
    for name in exchanges:
        alternate = chance.choice([{}, {"alternate-exchange": chance.choice(exchanges)}])
        bench.exchange(name, chance.choice(["direct", "fanout", "topic", "headers"]), arguments=alternate)
    for number in range(5):
        bench.queue(f"q{number}")
    for _ in range(20):
        to_exchange = chance.random() < 0.4
        destination = chance.choice(exchanges) if to_exchange else f"q{chance.randrange(5)}"
        table = {"x-match": chance.choice(["all", "any"]), "h": chance.randrange(2)}
        if chance.random() < 0.5:
            table["x-filter-jms-selector"] = f"h = {chance.randrange(3)}"
        source, key = chance.choice(exchanges), chance.choice(keys)
        bench.bind(source, destination, key, to_exchange=to_exchange, arguments=table)
    for exchange in ("", *exchanges):
        for key in ("a", "b", "a.b", "q1", ""):
            headers = {"h": chance.randrange(3)}
            explanation = _explain(bench, exchange, key, headers)
            assert set(explanation.queue_ids) == bench.route(exchange, key, headers).queue_ids
