from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.history import NEVER
from tests.simulation.routes import RouteBook
from tests.simulation.routing import Topology, headers_match, topic_matches
from tests.support.written_history import Written


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("#", "", True),
        ("#", "a.b", True),
        ("a.#", "a", True),
        ("a.*", "a", False),
        ("a.*", "a.b", True),
        ("*.*.c", "a.b.c", True),
        ("#.c.#", "a.c.d", True),
        ("a", "b", False),
    ],
)
def test_topic(pattern: str, key: str, *, matches: bool) -> None:
    """`*` is one word, `#` any number of them."""
    assert topic_matches(pattern.split("."), key.split(".") if key else []) is matches


@pytest.mark.parametrize(
    ("arguments", "matches"),
    [
        ({"h": 1}, True),
        ({"h": 1, "g": "x"}, False),
        ({"x-match": "any", "h": 1, "g": "x"}, True),
        ({"x-match": "any", "g": "x"}, False),
        ({"h": None}, True),
        ({"h": 1.0}, False),
        ({"x-t": 3}, True),
        ({"x-match": "all-with-x", "x-t": 3}, False),
        ({"x-match": "any-with-x", "x-t": 2}, True),
    ],
)
def test_headers(arguments: dict[str, Any], *, matches: bool) -> None:
    """Conditions are on values and their types; those of names with x- count when x-match says so."""
    assert headers_match(arguments, {"h": 1, "x-t": 2}) is matches


def _topology(*steps: dict[str, Any]) -> Topology:
    topology = Topology()
    for step in steps:
        topology.apply(step)
    return topology


def _exchange(name: str, type_: str, **more: Any) -> dict[str, Any]:
    return {"do": "exchange", "exchange": name, "type": type_, **more}


def test_exchange_to_exchange() -> None:
    """Messages go on through bound exchanges, in circles too, to each queue once."""
    topology = _topology(
        {"do": "queue", "queue": "q"},
        _exchange("x", "fanout"),
        _exchange("y", "fanout"),
        {"do": "bind", "source": "x", "to": "y", "to_exchange": True},
        {"do": "bind", "source": "y", "to": "x", "to_exchange": True},
        {"do": "bind", "source": "y", "to": "q"},
    )
    assert topology.route("x", "k", {}) == {"q"}


_WITH_ALTERNATE = (
    {"do": "queue", "queue": "q"},
    {"do": "queue", "queue": "rest"},
    _exchange("other", "fanout"),
    _exchange("x", "direct", arguments={"alternate-exchange": "other"}),
    {"do": "bind", "source": "other", "to": "rest"},
    {"do": "bind", "source": "x", "to": "q", "key": "a"},
)


def test_alternate() -> None:
    """What an exchange cannot route goes to its alternate."""
    topology = _topology(*_WITH_ALTERNATE)
    assert topology.route("x", "a", {}) == {"q"}
    assert topology.route("x", "b", {}) == {"rest"}


def test_many_keys() -> None:
    """Each exchange looks at all keys in CC and BCC; its alternate has what none of them leads anywhere with."""
    topology = _topology(
        *_WITH_ALTERNATE,
        {"do": "bind", "source": "amq.direct", "to": "x", "to_exchange": True, "key": "up"},
    )
    assert topology.route("", "none", {"CC": ["q", "b"], "BCC": ["rest", "q"]}) == {"q", "rest"}
    assert topology.route("x", "b", {"CC": ["a"]}) == {"q"}
    assert topology.route("x", "b", {"BCC": ["c"]}) == {"rest"}
    assert topology.route("amq.direct", "up", {"CC": ["a"]}) == {"q"}
    assert topology.route("amq.direct", "a", {}) == set()


def test_selectors() -> None:
    """A binding with one passes on what it selects, of what it matches; what is left has the alternate."""
    only = {"x-filter-jms-selector": "colour <> 'red'", "x-match": "all-with-x"}
    topology = _topology(
        *_WITH_ALTERNATE,
        {"do": "queue", "queue": "chosen"},
        {"do": "bind", "source": "x", "to": "chosen", "key": "b", "arguments": only},
        {"do": "bind", "source": "amq.match", "to": "chosen", "arguments": only},
    )
    assert topology.route("x", "b", {"colour": "blue"}) == {"chosen"}
    assert topology.route("x", "b", {"colour": "red"}) == topology.route("x", "b", {}) == {"rest"}
    assert topology.route("amq.match", "", {"colour": "blue"}) == {"chosen"}
    assert topology.route("amq.match", "", {"colour": "red"}) == set()


def test_deleting() -> None:
    """Bindings go with their queue, an auto-delete exchange with its last binding; then it is unknown."""
    topology = _topology(
        {"do": "queue", "queue": "q"},
        _exchange("x", "fanout", auto_delete=True),
        {"do": "bind", "source": "x", "to": "q"},
        {"do": "delete_queue", "queue": "q"},
    )
    assert topology.route("x", "", {}) is None
    assert topology.route("", "q", {}) == set()


def _book(told: Written) -> RouteBook:
    return RouteBook(told.history, "/")


def test_certain() -> None:
    """After the answers everything is certain."""
    told = Written()
    told.queue("q")
    routes = _book(told).of(told.publish("m", "q"))
    assert (routes.must, routes.may) == ({"q"}, {"q"})


def test_concurrent() -> None:
    """While a change is under way a message may go either way."""
    told = Written()
    told.queue("q")
    told.change("exchange", exchange="x", type="fanout")
    bind = told.change("bind", source="x", to="q")
    sent = told.publish("m", "", exchange="x", confirmed=False)
    sent.bound = told.history.tick()
    bind.answered = told.history.tick()
    routes = _book(told).of(sent)
    assert (routes.must, routes.may) == (set(), {"q"})


def test_unanswered() -> None:
    """A change that was never answered may have been carried out, or not."""
    told = Written()
    told.queue("q")
    told.change("delete_queue", queue="q", answered=False)
    routes = _book(told).of(told.publish("m", "q"))
    assert (routes.must, routes.may) == (set(), {"q"})


def test_late() -> None:
    """A message whose routing is not known yet may be routed by later changes."""
    told = Written()
    sent = told.publish("m", "q", confirmed=False)
    told.queue("q")
    book = _book(told)
    assert book.bound(sent) == NEVER
    assert (book.of(sent).must, book.of(sent).may) == (set(), {"q"})
