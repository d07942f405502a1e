"""What every exchange type must do."""

from __future__ import annotations

from typing import Any

from services.common.topology.exchanges.exchange_type import ByKey


def test_nothing_bound_matches_nothing(subject: Any) -> None:
    """An empty exchange routes to nowhere."""
    assert subject.route() == set()


def test_routes_to_queues_and_exchanges(subject: Any) -> None:
    """Every destination with a matching binding is found, queue or exchange."""
    subject.exchange.bind(subject.binding(7))
    subject.exchange.bind(subject.binding("other"))
    assert subject.route() == {7, "other"}


def test_unbound_destination_is_not_found(subject: Any) -> None:
    """After unbind a destination is no longer routed to, and others still are."""
    subject.exchange.bind(subject.binding(1))
    subject.exchange.bind(subject.binding(2))
    subject.exchange.unbind(subject.binding(1))
    assert subject.route() == {2}


def test_destination_stays_while_one_binding_is_left(subject: Any) -> None:
    """Bindings that differ only in arguments are two; the destination goes with the last."""
    plain, extra = subject.binding(1), subject.binding(1, **{"x-note": "again"})
    subject.exchange.bind(plain)
    subject.exchange.bind(extra)
    assert subject.route() == {1}
    subject.exchange.unbind(plain)
    assert subject.route() == {1}
    subject.exchange.unbind(extra)
    assert subject.route() == set()


def test_result_belongs_to_the_caller(subject: Any) -> None:
    """What a caller does to the set does not reach the exchange."""
    subject.exchange.bind(subject.binding(1))
    subject.route().clear()
    assert subject.route() == {1}


def test_many_keys(subject: Any) -> None:
    """A binding that one of many keys matches is enough, and where none does there is nothing."""
    binding = subject.binding(1)
    subject.exchange.bind(binding)
    others = [f"other{number}.key" for number in range(10_000)]
    assert subject.exchange.route([*others, subject.key, *others], subject.headers) == {1}
    assert subject.exchange.route(others, subject.headers) == (set() if subject.exchange.only_key(binding) else {1})


def test_only_key_is_true(subject: Any) -> None:
    """When a binding says that it concerns one key only, another key does not match it."""
    binding = subject.binding(1)
    subject.exchange.bind(binding)
    only = subject.exchange.only_key(binding)
    if only is not None:
        assert subject.exchange.route([only], subject.headers) == {1}
        assert subject.exchange.route([f"{only}.other"], subject.headers) == set()


def test_unbinding_everything_leaves_no_trace(subject: Any) -> None:
    """An exchange whose bindings are gone holds no memory of them, so that churn does not grow it."""
    fresh = _size(subject.exchange)
    bindings = [subject.binding(number, **{"x-note": number}) for number in range(20)]
    for binding in bindings:
        subject.exchange.bind(binding)
    assert _size(subject.exchange) > fresh
    for binding in reversed(bindings):
        subject.exchange.unbind(binding)
    assert _size(subject.exchange) == fresh


def _size(thing: Any) -> int:
    """How many objects hang on it."""
    if isinstance(thing, dict):
        return 1 + sum(map(_size, thing.values()))
    slots = getattr(type(thing), "__slots__", ()) or getattr(thing, "__dict__", ())
    return 1 + sum(_size(getattr(thing, slot)) for slot in slots)


def test_no_two_exchanges_have_an_end_in_common(subject: Any) -> None:
    """What a key leads to in one, or does not, says nothing of another, which may have an alternate."""
    other = type(subject.exchange)()
    if isinstance(subject.exchange, ByKey):
        assert subject.exchange.end_of(subject.key) is subject.exchange.end_of(subject.key)
        assert subject.exchange.end_of(subject.key) is not other.end_of(subject.key)
        subject.exchange.bind(subject.binding(1))
        other.bind(subject.binding(1))
        assert subject.exchange.end_of(subject.key) is not other.end_of(subject.key)
