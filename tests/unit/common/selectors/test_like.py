"""LIKE: patterns of texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.selectors.like import matcher, steps

_TEXTS = st.text("ab\n", max_size=12)
_PATTERNS = st.text("ab_%\n", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "escape", "like", "unlike"),
    [
        ("", "", [""], ["a"]),
        ("%", "", ["", "a", "a\nb"], []),
        ("a%", "", ["a", "ab"], ["ba", ""]),
        ("%a", "", ["a", "ba", "aba"], ["ab"]),
        ("a%a", "", ["aa", "aba"], ["a"]),
        ("%aa%", "", ["aa", "baab"], ["aba"]),
        ("l_se", "", ["lose"], ["loose", "lse"]),
        ("%_%", "", ["a"], [""]),
        (r"\_%", "\\", ["_abc"], ["abc"]),
        ("!%!!", "!", ["%!"], ["!", "a!"]),
        ("a!", "!", ["a!"], ["a"]),
        ("[a].*", "", ["[a].*"], ["a", "[a]xy"]),
    ],
)
def test_like(pattern: str, escape: str, like: list[str], unlike: list[str]) -> None:
    """All of a text is, or it is not."""
    fits = matcher(pattern, escape)
    assert [text for text in like + unlike if fits(text)] == like


@given(_PATTERNS, _TEXTS)
def test_as_a_regular_expression(pattern: str, text: str) -> None:
    """What is found part by part is what a search through all possibilities finds."""
    expression = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)
    assert matcher(pattern)(text) is (re.fullmatch(expression, text, re.DOTALL) is not None)


def test_a_pattern_that_never_ends() -> None:
    """One that a regular expression would try for years is done at once."""
    assert not matcher("%a" * 40 + "%c")("a" * 20_000 + "b")


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("____", 0), ("__%aa%__", 0), ("%a.a%", 0), ("%a_a%", 3), ("%a_a%aa%_%b", 4), (r"%a\_a%", 0), ("%_", 0)],
)
def test_steps(pattern: str, count: int) -> None:
    """Text without `_` is found in one go, and what is at an end has one place."""
    assert steps(pattern, "\\") == count
