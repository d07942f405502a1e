"""Bindings that are asked for."""

from __future__ import annotations

import pytest

from services.router.topology.find_binding import Found, find_binding
from tests.support.topology_bench import Bench

YES, NO = Found(is_bound=True), Found()


@pytest.fixture
def bench() -> Bench:
    """Queue a is bound to a topic exchange, b is not; exchange empty has no bindings, exchange on leads to another."""
    bench = Bench()
    bench.queue("a")
    bench.queue("b")
    bench.exchange("topics", "topic")
    bench.exchange("empty")
    bench.exchange("on")
    bench.bind("topics", "a", "eu.*")
    bench.bind("on", "topics", "k", to_exchange=True)
    return bench


@pytest.mark.parametrize(
    ("exchange", "key", "queue", "found"),
    [
        ("topics", None, None, YES),
        ("topics", None, "a", YES),
        ("topics", "eu.*", None, YES),
        ("topics", "eu.*", "a", YES),
        ("topics", "eu.new", None, NO),
        ("topics", "eu.new", "a", NO),
        ("topics", None, "b", NO),
        ("topics", "eu.*", "b", NO),
        ("topics", None, "none", Found(unknown_queue=True)),
        ("none", None, "none", Found(unknown_exchange=True)),
        ("empty", None, None, NO),
        ("on", "k", None, YES),
        ("on", "k", "a", NO),
        ("", None, None, YES),
        ("", "a", None, YES),
        ("", "c", None, NO),
        ("", None, "a", YES),
        ("", "a", "a", YES),
        ("", "b", "a", NO),
        ("", "a", "none", Found(unknown_queue=True)),
    ],
)
def test_what_is_found(bench: Bench, exchange: str, key: str | None, queue: str | None, found: Found) -> None:
    """A pattern is a key like any other; every queue is bound to the default exchange by its name."""
    assert find_binding(bench.topology.virtual_hosts["/"], exchange, key, queue) == found


def test_an_exchange_of_that_name_is_no_queue(bench: Bench) -> None:
    """Queues are found, with any other bindings."""
    assert find_binding(bench.topology.virtual_hosts["/"], "on", "k", "topics") == Found(unknown_queue=True)


def test_nothing_is_there_any_more(bench: Bench) -> None:
    """An exchange whose queue went has no bindings; without queues the default exchange has none."""
    for name in ("a", "b"):
        bench.do("delete_queue", name=name)
    host = bench.topology.virtual_hosts["/"]
    assert find_binding(host, "topics", None, None) == NO
    assert find_binding(host, "", None, None) == NO
