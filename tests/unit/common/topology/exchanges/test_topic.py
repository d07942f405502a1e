from __future__ import annotations

import re
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.topology.exchanges import automaton, patterns
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


_changes = st.lists(st.tuples(st.booleans(), _patterns, st.lists(_keys, min_size=1, max_size=6)), max_size=12)


@given(_changes, st.sampled_from([0, 3, 1 << 20]))
def test_what_was_learned_of_keys_does_not_outlive_a_change(changes: Any, most: Any) -> None:
    """Bound, unbound and asked in any order, however little is kept: what each pattern matches, one key or many.

    Keys with one end lead to the same destinations.
    """
    exchange, bound = TopicExchange(), set[str]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(automaton, "_MOST", most)
        for binds, pattern, keys in changes:
            if binds and pattern not in bound:
                exchange.bind(Binding(pattern, pattern))
                bound.add(pattern)
            elif not binds and pattern in bound:
                exchange.unbind(Binding(pattern, pattern))
                bound.remove(pattern)
            expected = {key: {each for each in bound if _naive(each, key)} for key in keys}
            for key in keys:
                assert exchange.route([key], {}) == expected[key]
            assert exchange.route(keys, {}) == set().union(*expected.values())
            ends = [(exchange.end_of(key), key) for key in keys]
            for (end, key), (other, its_key) in product(ends, ends):
                assert end is not other or end is None or expected[key] == expected[its_key]


def test_words_that_are_always_new_make_nothing_of_their_own() -> None:
    """A million devices have one end, and are found by the states that there were after the first."""
    exchange = TopicExchange()
    exchange.bind(Binding(1, "devices.*.temperature"))
    exchange.bind(Binding(2, "devices.known.#"))
    end = exchange.end_of("devices.first.temperature")
    states = dict(exchange._automaton._states)
    assert {exchange.end_of(f"devices.{number}.temperature") for number in range(1000)} == {end}
    assert exchange._automaton._states == states
    assert exchange.end_of("devices.known.temperature") is not end


def test_many_hashes_make_no_more_states_than_their_words_warrant() -> None:
    """Patterns that could make very many states take as much memory as their words warrant, and match all the same."""
    exchange = TopicExchange()
    patterns_of = [f"#.{word}.#.{other}" for word in "abcdef" for other in "abcdef"]
    for pattern in patterns_of:
        exchange.bind(Binding(pattern, pattern))
    warranted = automaton._PER_WORD * (1 + 5 * len(patterns_of))
    longest = 6 * (3 * len(patterns_of) + 2)  # of one key
    for key in map(".".join, permutations("abcdef")):
        assert exchange.route([key], {}) == {each for each in patterns_of if _naive(each, key)}
        assert exchange._automaton._looks <= warranted + longest


def test_states_that_are_not_worth_making_are_made_once() -> None:
    """A key whose states are too many is looked up as one without an end, and its neighbours are; until a change."""
    exchange = TopicExchange()
    pattern, key = ".".join(["#", "a"] * 63), ".".join("a" * 128)
    exchange.bind(Binding(1, pattern))
    exchange.end_of(key)
    assert exchange._automaton._states == {}
    assert [exchange.end_of(each) for each in (key, "a", "b")] == [None, None, None]
    assert exchange.route([key], {}) == {1}
    assert exchange.route([key, "b"], {}) == {1}
    exchange.bind(Binding(2, "b"))
    assert exchange.end_of("b") is exchange.end_of("b") is not None
    assert exchange.route(["b"], {}) == {2}


def test_states_that_many_keys_used_are_made_again() -> None:
    """Ten thousand devices with a pattern each are too many for all of their states, and worth them."""
    exchange = TopicExchange()
    for number in range(10_000):
        exchange.bind(Binding(number, f"devices.{number}.#"))
    ends = [
        (exchange.end_of(f"devices.{number}.a"), exchange.end_of(f"devices.{number}.b")) for number in range(10_000)
    ]
    assert all(map(all, ends))
    assert sum(one is other for one, other in ends) > 9_990


def test_many_hashes_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern full of `#` costs no more than its length for each word of the key."""
    entered = 0
    enter = patterns._enter

    def count(live: dict[patterns.Node, None], node: patterns.Node) -> None:
        nonlocal entered
        entered += 1
        enter(live, node)

    monkeypatch.setattr(patterns, "_enter", count)
    exchange = TopicExchange()
    pattern = ["#", "a"] * 15
    exchange.bind(Binding(1, ".".join(pattern)))
    assert exchange.route([".".join(["a"] * 80)], {}) == {1}
    assert exchange.route([".".join(["a"] * 80 + ["b"])], {}) == set()
    assert entered <= len(pattern) * (80 + 81)
