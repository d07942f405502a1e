"""Patterns for names, in Python and in SQL."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common import patterns
from services.mgmt.lookup.patterns import fits

_CHARACTERS = st.text("ab*?[]!-\\:.", max_size=6)


@pytest.mark.parametrize(
    ("value", "pattern", "does"),
    [
        ("orders.eu", "orders.*", True),
        ("orders.eu", "orders.e?", True),
        ("orders.eu", "ORDERS.*", False),
        ("jobs[eu]", "jobs[eu]", True),
        ("jobse", "jobs[eu]", False),
        ("jobs[eu]-7", "jobs[eu]-?", True),
        ("[2001:db8::7]:50001", "[2001:db8::7]:*", True),
        ("a\\b", "a\\?", True),
        ("a", "[!b]", False),
    ],
)
def test_what_fits(value: str, pattern: str, does: bool) -> None:
    """`*` and `?` alone are more than themselves."""
    assert patterns.fits(value, pattern) is does


@given(_CHARACTERS, _CHARACTERS)
def test_sql_has_the_same(value: str, pattern: str) -> None:
    """What the record is searched with, and what rules and followers look at, agree."""
    asked = f"select {fits('v', 'p')} from (select $v as v)"
    [(found,)] = duckdb.sql(asked, params={"v": value, "p": pattern}).fetchall()
    assert found is patterns.fits(value, pattern)
