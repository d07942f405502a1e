"""Bindings with a selector, on every exchange type, beside a model that tries one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.common import plugins
from services.common.message import arguments
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.message import OfHeaders
from services.common.topology.source import Source

_SELECTORS: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "": lambda _: True,
    "h = 1": lambda headers: headers.get("h") == 1,
    "h > 0 AND g IS NULL": lambda headers: headers.get("h", 0) > 0 and "g" not in headers,
    "g LIKE 'a%'": lambda headers: headers.get("g", "").startswith("a"),
    "NOT h = 1": lambda headers: "h" in headers and headers["h"] != 1,
}
_TABLES: Final = ({}, {"h": 1}, {"x-match": "any", "h": 1, "g": "ab"}, {"x-match": "all-with-x", "h": 1})
_bound = st.tuples(
    st.sampled_from([1, 2, "other"]), st.sampled_from(["k", "k.l", "k.*", "#"]), st.sampled_from(_TABLES),
    st.sampled_from([None, *_SELECTORS]),
)  # fmt: skip
_headers = st.fixed_dictionaries({}, optional={"h": st.integers(0, 2), "g": st.sampled_from(["ab", "b"])})
_messages = st.tuples(st.lists(st.sampled_from(["k", "k.l", "m"]), min_size=1, max_size=2), _headers)


def _binding(bound: tuple[Any, ...]) -> Binding:
    destination, key, table, selector = bound
    said = {} if selector is None else {"x-filter-jms-selector": selector}
    return Binding(destination, key, arguments.dump({**table, **said}))


def _alone(kind: str, bound: tuple[Any, ...], keys: list[str], headers: dict[str, Any]) -> bool:
    """Whether a message goes by that binding."""
    destination, key, table, selector = bound
    exchange = plugins.load("exchange_types", kind)()
    exchange.bind(Binding(destination, key, arguments.dump(table)))
    return bool(exchange.route(keys, headers)) and _SELECTORS[selector or ""](headers)


@pytest.mark.fuzz
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(plugins.names("exchange_types")), st.lists(_bound, max_size=8, unique_by=str), st.data())
def test_as_one_by_one(kind: str, bound: list[tuple[Any, ...]], data: Any) -> None:
    """A message goes where each binding alone would route it, also after unbinds; without a selector all go."""
    source = Source(Exchange("/", "e", kind), plugins.load("exchange_types", kind)())
    there: list[tuple[Any, ...]] = []
    for each in bound:
        source.bind(_binding(each))
        there.append(each)
        if data.draw(st.booleans()):
            source.unbind(_binding(there.pop(data.draw(st.integers(0, len(there) - 1)))))
        keys, headers = data.draw(_messages)
        found, looks = source.route(keys, OfHeaders(headers))
        assert found == {each[0] for each in there if _alone(kind, each, keys, headers)}
        if not looks:
            assert found == source.route(keys, OfHeaders({"h": 1, "g": "ab"}))[0]
    for each in there:
        source.unbind(_binding(each))
    assert source.route(["k"], OfHeaders({"h": 1})) == (set(), source.matcher.needs_headers)
    assert not source.bindings
