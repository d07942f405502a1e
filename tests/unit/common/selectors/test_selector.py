"""Message selectors (JMS 3.8.1.1): what a condition says of a message."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from services.common.selectors import selector as remembering
from services.common.selectors.selector import LONGEST, InvalidSelector, said_now, selector
from services.common.selectors.term import Equality

MESSAGE: dict[str, Any] = {
    "JMSType": "car",
    "age": 17,
    "color": "blue",
    "Country": "UK",
    "dotted.name": 5,
    "half": 2.5,
    "minus": -7,
    "phone": "12993",
    "quote": "it's",
    "ready": True,
    "table": {"a": 1},
    "underscored": "_abc",
    "weight": 3000,
    "zero": 0,
    "éclair": "x",
}


@pytest.mark.parametrize(
    "text",
    [
        "JMSType = 'car' AND color = 'blue' AND weight > 2500",
        "age BETWEEN 15 AND 19",
        "age NOT BETWEEN 18 AND 19",
        "Country IN (' US', 'UK', 'France')",
        "Country NOT IN ('US')",
        "phone LIKE '12%3'",
        "phone NOT LIKE '13%'",
        r"underscored LIKE '\_%' ESCAPE '\'",
        "missing IS NULL",
        "age IS NOT NULL",
        "table IS NOT NULL",
        "quote = 'it''s'",
        "ready",
        "ready = TRUE and not (ready = false)",
        "ready <> FALSE",
        "NOT age = 18",
        "NOT age = 18 AND color = 'blue'",
        "color = 'red' OR color = 'green' OR color = 'blue'",
        "color = 'red' AND color = 'green' OR color = 'blue'",
        "age + 3 * 2 = 23",
        "(age + 3) * 2 = 40",
        "age - -1 = 18",
        "-minus = 7",
        "+age = 17",
        "age / 2 = 8",
        "minus / 2 = -3",
        "minus % 2 = -1",
        "age % 5 = 2",
        "half * 2 = 5",
        "age / 2.0 = 8.5",
        "half = 2.5 AND half = 25e-1 AND half = .25E1 AND half < 3. AND half < 7.5f",
        "age = 0x11 AND age = 021 AND age = 17L",
        "17 = age AND 16 < age",
        "1 = 1",
        '"dotted.name" = 5',
        "éclair = 'x'",
        "age = 17 -- and nothing else\n",
        "age /* years */ = 17",
        "ORDER IS NULL AND ANDROID IS NULL",
        "age = 17.0",
        "minus = -9223372036854775808 OR TRUE",
    ],
)
def test_selected(text: str) -> None:
    """Each is true of the message."""
    assert selector(text).selects(MESSAGE.get)


@pytest.mark.parametrize(
    "text",
    [
        # not so
        "color = 'red'",
        "color = 'BLUE'",
        "Color IS NOT NULL",  # identifiers are case-sensitive
        "age BETWEEN 18 AND 19",
        "phone LIKE '12%4'",
        "FALSE",
        # unknown, and its opposite as well
        "missing = 1",
        "NOT missing = 1",
        "missing <> 1",
        "missing",
        "NOT missing",
        "missing IN ('a')",
        "missing NOT IN ('a')",
        "missing LIKE '%'",
        "missing NOT LIKE '%'",
        "missing BETWEEN 1 AND 2",
        "missing NOT BETWEEN 1 AND 2",
        "age = NULL",
        "age <> NULL",
        "NULL",
        "missing = 1 AND TRUE",
        "missing = 1 OR FALSE",
        "age + missing = 17",
        "color + 1 = 1",
        "1 / zero = 1 OR 1 / zero <> 1",
        "1 % zero = 1 OR 1.0 / zero <> 1",
        "NOT color",
        # of different kinds
        "age = '17'",
        "age <> '17'",
        "ready = 1",
        "zero = FALSE",
        "color < 5",
        "color >= age",
        "Country < color OR Country > color",  # text has no order
        "ready < ready OR ready = color",
        "table = table",
        "age LIKE '17'",
        "age IN ('17')",
    ],
)
def test_not_selected(text: str) -> None:
    """Each is false of the message, or unknown."""
    assert not selector(text).selects(MESSAGE.get)


_WORDS = "more than 1000 words and signs; a list of texts behind IN counts as one"
_STEPS = "more than 256 characters stand between two % and have _ among them"
_TRUTHS = {"TRUE": True, "FALSE": False, "missing = 1": None}


@pytest.mark.parametrize("one", _TRUTHS)
@pytest.mark.parametrize("other", _TRUTHS)
def test_three_values(one: str, other: str) -> None:
    """AND, OR, NOT by the tables of JMS 3.8.1.2, and so De Morgan's laws."""
    values = {_TRUTHS[one], _TRUTHS[other]}
    both = False if False in values else None if None in values else True
    either = True if True in values else None if None in values else False
    for text, expected in ((f"({one}) AND ({other})", both), (f"({one}) OR ({other})", either)):
        assert selector(text).selects(MESSAGE.get) is (expected is True)
        assert selector(f"NOT ({text})").selects(MESSAGE.get) is (expected is False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends too early"),
        ("age =", "it ends too early"),
        ("age = 17)", "not understood at character 9: ')'"),
        ("age == 17", "not understood at character 6: '= 17'"),
        ("color = 'blue", 'not understood at character 9: "\'blue"'),
        ("08 = 8", "not understood at character 1: '08 = 8'"),
        ("5x = 5", "not understood at character 1: '5x = 5'"),
        ("age LIKE 5", "not understood at character 10: '5'"),
        ("color IN (1)", "not understood at character 11: '1)'"),
        ("color IN ()", "not understood at character 11: ')'"),
        ("NOT", "it ends too early"),
        ("age = 1; DROP", "not understood at character 8: '; DROP'"),
        ("17", "it gives a number, and has to give a truth value"),
        ("'text'", "it gives text, and has to give a truth value"),
        ("age + 1", "it gives a number, and has to give a truth value"),
        ("age AND 5", "AND wants a truth value, not a number"),
        ("NOT 'x'", "NOT wants a truth value, not text"),
        ("age < 'x'", "< wants a number, not text"),
        ("age > TRUE", "> wants a number, not a truth value"),
        ("1 = 'x'", "= wants a number, not text"),
        ("color + 'x' = 'y'", "+ wants a number, not text"),
        ("5 IN ('x')", "IN wants text, not a number"),
        ("5 LIKE 'x'", "LIKE wants text, not a number"),
        ("color LIKE 'x' ESCAPE 'ab'", "ESCAPE wants one character, not 'ab'"),
        ("age = 9223372036854775809", "9223372036854775809 is too large for a whole number"),
        ("age = " + "9" * 5000, "9" * 5000 + " is too large for a whole number"),
        ("age = 1e999", "1e999 is too large for a number"),
        ("NOT " * 500 + "ready", "more than 200 terms lie in each other"),
        ("- " * 500 + "age = 1", "more than 200 terms lie in each other"),
        (f"a LIKE '%b{'_' * 256}b%'", _STEPS),
        (" AND ".join(["a LIKE '%b_____b%'"] * 50), _STEPS),
        (" OR ".join(["ready"] * 501), _WORDS),
        ("ready OR " * LONGEST + "ready", f"longer than {LONGEST} characters"),
    ],
)
def test_invalid(text: str, why: str) -> None:
    """The refusal says what is wrong, and where."""
    with pytest.raises(InvalidSelector) as raised:
        said_now(text)
    assert str(raised.value) == why


def test_long_and_nested() -> None:
    """Thousands of alternatives are one term, and parentheses are none."""
    alternatives = " OR ".join(f"age = {number}" for number in range(1000, 2500)) + " OR age = 17"
    assert selector(alternatives).selects(MESSAGE.get)
    assert selector("(" * 3000 + "ready" + ")" * 3000).selects(MESSAGE.get)


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("color = 'blue'", {("color", "blue")}),
        ("'blue' = color AND weight > 5", {("color", "blue")}),
        ("color = 'blue' AND (age = 17 AND ready)", {("color", "blue"), ("age", 17)}),
        ("color = 'blue' AND age = 1 OR color = 'blue' AND age = 2", {("color", "blue")}),
        ("color = 'blue' OR age = 17", set()),
        ("NOT color = 'blue'", set()),
        ("color <> 'blue'", set()),
        ("age = -7", {("age", -7)}),
    ],
)
def test_required(text: str, required: set[tuple[str, Any]]) -> None:
    """What an index can find its messages by: without one of these, no message is selected."""
    assert selector(text).required == {Equality.of(name, value) for name, value in required}


def test_required_tells_kinds_apart() -> None:
    """1 and 1.0 are one number; TRUE is none."""
    assert Equality.of("a", 1) == Equality.of("a", 1.0)
    assert Equality.of("a", 1) != Equality.of("a", True)


def test_long_ones_are_not_kept() -> None:
    """Compiled, one of 32 KiB takes a megabyte: clients with one of their own each must not take gigabytes."""
    for number in range(200):
        text = f"a{number} = '{number:02000}'"
        assert selector(text) is selector(text)
    known = chain(remembering._known, remembering._known._aside)
    assert 0 < sum(map(len, known)) <= 256 << 10
