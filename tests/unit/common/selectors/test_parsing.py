"""The quick reader of selectors, held against Lark's own: the same trees, the same refusals at the same places."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from services.common.selectors import selector as compiling
from services.common.selectors.grammar import GRAMMAR
from services.common.selectors.parsing import NotUnderstood, Parser
from services.common.selectors.selector import selector

_LARK: Final = Lark(GRAMMAR, parser="lalr", start="selector", maybe_placeholders=True)
_QUICK: Final = Parser(_LARK)

_WORDS: Final = (
    *(
        "a",
        "_b$",
        "é1",
        "and1",
        "1",
        "0",
        "17L",
        "0x1f",
        "021",
        "2.5",
        ".5e3",
        "1e9d",
        "08",
        "1x",
        "'t'",
        "'it''s'",
        "''",
    ),
    *(
        '"q"',
        '"q""q"',
        "and",
        "OR",
        "Not",
        "between",
        "in",
        "IS",
        "like",
        "escape",
        "null",
        "true",
        "false",
        "\u0131s",
        "nuLL",
    ),
    *("(", ")", ",", "=", "<>", "<=", "<", ">", "+", "-", "*", "/", "%", "('x', 'y')", "( 'x')", "('x', -- c\n 'y')"),
    *("--", "/*", "*/", "/* c */", "-- c\n", "'", '"', "#", "\n", "\u00a0", "."),
)
_ANYTHING = st.lists(st.sampled_from(_WORDS), max_size=14).flatmap(
    lambda words: st.sampled_from(["", " ", "  \t"]).map(lambda between: between.join(words))
)
_SIGNS = (" or", "OR", " and", "aNd", " = ", "=", "<>", " < ", " + ", "-", "*", "/", " % ")
_LITERALS = st.sampled_from(["a", "b", "x1", '"q"', "1", "0x1F", "07", "2.5", "'t'", "''", "null", "TRUE", "é"])


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    text = st.sampled_from(["'t'", "'it''s'", "''"])
    texts = st.lists(text, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(parts, st.sampled_from(_SIGNS), parts).map(" ".join),
        parts.map(lambda each: f"({each})"),
        parts.map(lambda each: f"not {each}"),
        parts.map(lambda each: f"-{each}"),
        st.tuples(parts, st.sampled_from(["is null", "IS NOT NULL"])).map(" ".join),
        st.tuples(parts, st.sampled_from(["between", "not  between"]), parts, st.just("and"), parts).map(" ".join),
        st.tuples(parts, st.sampled_from(["in", "NOT in"]), texts.map("({})".format)).map(" ".join),
        st.tuples(parts, st.sampled_from(["like", "not like"]), text).map(" ".join),
        st.tuples(parts, st.just("like"), text, st.just("escape"), text).map(" ".join),
    )


_MOSTLY_RIGHT = st.recursive(_LITERALS, _larger, max_leaves=12)


def _by_lark(text: str) -> Tree[str] | str | int | None:
    try:
        return _LARK.parse(text)
    except UnexpectedInput as error:
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            return None
        return error.pos_in_stream


def _by_ours(text: str) -> Tree[str] | str | int | None:
    try:
        return _QUICK.parse(text)  # type: ignore[no-any-return]
    except NotUnderstood as error:
        return error.at


@settings(max_examples=400, deadline=None)
@given(st.one_of(_MOSTLY_RIGHT, _ANYTHING))
def test_it_understands_what_lark_understands(text: str) -> None:
    """The same tree, or the same place where it is not understood."""
    assert _by_ours(text) == _by_lark(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "or = 1 and in in ('and')",
        "a in ('x', /* c */ 'y')",
        "a not in('x')",
        "a --b\n= 1",
        "a/*b*/=1",
        "a / *",
        "1.and",
        "a = 1 OR " * 3,
        "between between 1 and 2",
        "a BETWEEN not AND 2",
        "like like 'x' escape '!'",
        "(" * 500 + "a" + ")" * 500,
        "(" * 500 + "a",
    ],
)
def test_corners(text: str) -> None:
    """Words that are keywords only where these can stand, comments, and what ends too early."""
    assert _by_ours(text) == _by_lark(text)


def test_one_that_is_in_use_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that comes to another owner has its selector there: also where more are in use than are remembered."""
    held = selector("kept = 'by a consumer'")
    monkeypatch.setattr(compiling, "_known", type(compiling._known)(1024, 256 << 10))
    assert compiling.is_compiled(held.text)
    assert selector(held.text) is held
    assert not compiling.is_compiled("nobody = 'has it'")
