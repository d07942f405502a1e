"""Selectors against a model that shares nothing with them: random terms, written down, and reckoned one by one."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from services.common.selectors.selector import InvalidSelector, selector

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NAMES = st.sampled_from(["a", "b", "c", "d"])
_NUMBERS = st.integers(-5, 5)
_MESSAGES = st.dictionaries(_NAMES, st.none() | st.booleans() | _NUMBERS | st.sampled_from(["", "x", "y"]))


class Node(NamedTuple):
    """A term as text, and what it is of a message."""

    text: str
    value: Callable[[dict[str, Any]], Any]


def _calculated(one: Any, sign: str, other: Any) -> Any:
    if not all(type(each) is int for each in (one, other)):
        return None
    return one + other if sign == "+" else one - other if sign == "-" else one * other


def _compared(one: Any, sign: str, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    if type(one) is not type(other) or (sign not in {"=", "<>"} and type(one) is not int):
        return False
    return _COMPARE[sign](one, other)


def _and(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else True if one is True and other is True else None


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _number(value: int) -> Node:
    return Node(str(value), lambda _: value)


def _identifier(name: str) -> Node:
    return Node(name, lambda message: message.get(name))


def _sum(parts: tuple[Node, str, Node]) -> Node:
    left, sign, right = parts
    return Node(f"({left.text} {sign} {right.text})", lambda m: _calculated(left.value(m), sign, right.value(m)))


def _condition(parts: tuple[Node, str, Node]) -> Node:
    left, sign, right = parts
    return Node(f"{left.text} {sign} {right.text}", lambda m: _compared(left.value(m), sign, right.value(m)))


def _null(term: Node) -> Node:
    return Node(f"{term.text} IS NULL", lambda m: term.value(m) is None)


def _negation(term: Node) -> Node:
    return Node(f"NOT ({term.text})", lambda m: _not(term.value(m)))


def _both(parts: tuple[Node, Node]) -> Node:
    one, other = parts
    return Node(f"({one.text}) AND ({other.text})", lambda m: _and(one.value(m), other.value(m)))


def _either(parts: tuple[Node, Node]) -> Node:
    one, other = parts
    return Node(f"({one.text}) OR ({other.text})", lambda m: _not(_and(_not(one.value(m)), _not(other.value(m)))))


_TERMS = st.recursive(
    _NUMBERS.map(_number) | _NAMES.map(_identifier),
    lambda terms: st.tuples(terms, st.sampled_from("+-*"), terms).map(_sum),
    max_leaves=4,
)
_CONDITIONS = st.tuples(_TERMS, st.sampled_from(sorted(_COMPARE)), _TERMS).map(_condition) | _TERMS.map(_null)
_SELECTORS = st.recursive(
    _CONDITIONS,
    lambda some: some.map(_negation) | st.tuples(some, some).map(_both) | st.tuples(some, some).map(_either),
    max_leaves=6,
)


@given(_SELECTORS, _MESSAGES)
def test_as_the_model_says(node: Node, message: dict[str, Any]) -> None:
    """True, or not, of any message; and what it requires is there wherever it is true."""
    compiled = selector(node.text)
    assert compiled.selects(message.get) is (node.value(message) is True)
    if compiled.selects(message.get):
        assert all(message.get(name) == value for name, value, _ in compiled.required)


@given(st.text("ab1'\"()=<>+-*/% \n,ANDORTIS_", max_size=30))
def test_any_text(text: str) -> None:
    """Any text is understood, or refused with the reason: nothing else is ever raised."""
    with contextlib.suppress(InvalidSelector):
        selector(text).selects({}.get)
