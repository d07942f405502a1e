from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.topology.exchanges import topic
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.exchanges.topic import TopicExchange

_CASES = [
    ("*.stock.#", "usd.stock", True),
    ("*.stock.#", "eur.stock.db", True),
    ("*.stock.#", "stock.nasdaq", False),
    ("#", "", True),
    ("#", "a.b.c", True),
    ("*", "", False),
    ("*", "a", True),
    ("", "", True),
    ("", "a", False),
    ("#.#", "", True),
    ("#.a.#", "a", True),
    ("#.a.#", "b.a.c", True),
    ("#.*", "", False),
    ("a.#.b", "a.b", True),
    ("a.#.b", "a.x.y.b", True),
    ("a.#.b", "a.b.c", False),
    ("a.*.b", "a.b", False),
    ("a.", "a.", True),
    ("*.*", ".", True),
    ("a*", "ab", False),
]


@pytest.mark.specification("AMQP 0-9-1, 3.1.3.3")
@pytest.mark.parametrize(("pattern", "key", "matches"), _CASES)
def test_wildcards(pattern: Any, key: Any, matches: Any) -> None:
    """`*` is exactly one word, `#` zero or more, anything else itself."""
    exchange = TopicExchange()
    exchange.bind(Binding(1, pattern))
    assert bool(exchange.route([key], {})) is matches


def _naive(pattern: str, key: str) -> bool:
    words = {"*": r"\.[^.]*", "#": r"(?:\.[^.]*)*"}
    expression = "".join(words.get(word, re.escape(f".{word}")) for word in (pattern.split(".") if pattern else []))
    return re.fullmatch(expression, f".{key}" if key else "") is not None


_words = st.sampled_from(["a", "b", "", "*", "#"])
_patterns = st.lists(_words, max_size=5).map(".".join)
_keys = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=5).map(".".join)


@given(st.sets(_patterns, max_size=12), st.data(), _keys)
def test_trie_agrees_with_regular_expressions(patterns: Any, data: Any, key: Any) -> None:
    """For any patterns, some of them unbound again, the trie finds what matching each alone finds."""
    exchange = TopicExchange()
    numbered = dict(enumerate(sorted(patterns)))
    for number, pattern in numbered.items():
        exchange.bind(Binding(number, pattern))
    for number in data.draw(st.sets(st.sampled_from(sorted(numbered)))) if numbered else ():
        exchange.unbind(Binding(number, numbered.pop(number)))
    assert exchange.route([key], {}) == {number for number, pattern in numbered.items() if _naive(pattern, key)}


def test_many_hashes_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern full of `#` costs no more than its length for each word of the key."""
    entered = 0
    enter = topic._enter

    def count(live: set[topic._Node], node: topic._Node) -> None:
        nonlocal entered
        entered += 1
        enter(live, node)

    monkeypatch.setattr(topic, "_enter", count)
    exchange = TopicExchange()
    pattern = ["#", "a"] * 15
    exchange.bind(Binding(1, ".".join(pattern)))
    assert exchange.route([".".join(["a"] * 80)], {}) == {1}
    assert exchange.route([".".join(["a"] * 80 + ["b"])], {}) == set()
    assert entered <= len(pattern) * (80 + 81)
