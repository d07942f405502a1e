"""Bindings that pass on nothing that a queue's own consumers publish, and others beside them."""

from __future__ import annotations

from typing import Any

import pytest

from services.common import plugins
from services.common.arguments import binding
from services.common.arguments.reading import Wrong
from services.common.message import arguments
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.message import OfHeaders
from services.common.topology.route import route
from services.common.topology.source import Source
from services.common.topology.targets import NotLocal, targets_of

RED = OfHeaders({"colour": "red"})
SPARES = {"x-qpid-no-local": True}


def source(kind: str, name: str = "e") -> Source:
    return Source(Exchange("/", name, kind), plugins.load("exchange_types", kind)())


def bound(destination: int | str, table: dict[str, Any], key: str = "k") -> Binding:
    return Binding(destination, key, arguments.dump(table))


def found(*sources: Source) -> tuple[set[int], set[int]]:
    """Where a red message with the key goes, and where of these it spares."""
    its = route({each.definition.name: each for each in sources}, sources[0].definition.name, "k", RED)
    return set(its.queue_ids), set(its.not_local)


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_every_exchange_type(kind: str) -> None:
    """What another binding of the same queue passes on is spared nobody, in whichever order they come and go."""
    one = source(kind)
    one.bind(bound(1, SPARES))
    one.bind(bound(2, {}))
    assert found(one) == ({1, 2}, {1})
    one.bind(bound(1, {"a": "b"} if kind != "headers" else {}))
    assert found(one) == ({1, 2}, set())
    one.unbind(bound(1, {"a": "b"} if kind != "headers" else {}))
    assert found(one) == ({1, 2}, {1})
    one.unbind(bound(1, SPARES))
    assert found(one) == ({2}, set())
    assert one.sparing is None


def test_with_a_selector() -> None:
    """Both count."""
    one = source("topic")
    one.bind(bound(1, {**SPARES, "x-filter-jms-selector": "colour = 'red'"}))
    one.bind(bound(2, {**SPARES, "x-filter-jms-selector": "colour = 'blue'"}))
    assert found(one) == ({1}, {1})
    assert route({"e": one}, "e", "k", RED).needs_headers


def test_by_way_of_another_exchange() -> None:
    """One that leads to an exchange spares nobody; a queue that is reached both ways neither."""
    first, second = source("fanout"), source("direct", "f")
    first.bind(bound("f", SPARES))
    first.bind(bound(1, SPARES))
    assert found(first, second) == ({1}, {1})
    second.bind(bound(1, {}))
    second.bind(bound(2, SPARES))
    assert found(first, second) == ({1, 2}, {2})


@pytest.mark.parametrize("value", ["x", 1, None])
def test_what_says_nothing(value: object) -> None:
    """Is refused where it is said now; where a former release took it, it is bound as before."""
    with pytest.raises(Wrong, match="x-qpid-no-local"):
        binding.check({"x-qpid-no-local": value})
    one, said = source("direct"), bound(1, {"x-qpid-no-local": value})
    one.bind(said)
    assert found(one) == ({1}, set())
    one.unbind(said)
    assert found(one) == (set(), set())
    binding.check({"x-qpid-no-local": False})


def test_targets() -> None:
    """Equal ones are those of which equal ones are spared."""
    some = targets_of({1, 2}, {2})
    assert isinstance(some, NotLocal)
    assert (some.of_consumer({2, 3}), some.of_consumer({1})) == ((1,), (1, 2))
    assert some == targets_of({1, 2}, {2})
    assert len({some, targets_of({1, 2}, {1}), targets_of({1, 2}, ()), targets_of([1, 2], {2})}) == 3
