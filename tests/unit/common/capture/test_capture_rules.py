"""Which messages a capture rule means, for how long, and what it has cost."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.common.capture.cost import Account, Cost, captured, taken_by_others
from services.common.capture.rules import LONGEST_SECONDS, MOST_BODY, MOST_BYTES, Rule, Terms
from services.common.capture.text import text_of


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        ({}, True),
        ({"virtual_host": "/"}, True),
        ({"virtual_host": "other"}, False),
        ({"queue": "wo*"}, True),
        ({"queue": "x*"}, False),
        ({"client": "ali?e"}, True),
        ({"client": "5.1"}, True),
        ({"client": "bob"}, False),
        ({"exchange": "orders", "key": "eu.*"}, True),
        ({"exchange": "orders", "key": "us.*"}, False),
        ({"exchange": ""}, False),
        ({"queue": "work", "client": "bob"}, False),
    ],
)
def test_all_of_its_patterns_match(patterns: dict[str, str], fits: bool) -> None:
    """Exchange, key, queue, virtual host and any name of the client; what is not said matches everything."""
    rule = Rule(name="r", made_ms=0, **patterns)
    found = rule.is_about("/", "work", ("shop", "alice", "5.1")) and rule.matches("orders", "eu.new")
    assert found is fits


@pytest.mark.parametrize(
    "terms",
    [
        {"seconds": 0},
        {"seconds": LONGEST_SECONDS + 1},
        {"limit": 0},
        {"limit": MOST_BYTES + 1},
        {"body": -1},
        {"body": MOST_BODY + 1},
        {"quee": "work"},
    ],
)
def test_none_is_without_bounds(terms: dict[str, int]) -> None:
    """Every rule has an end in time and a limit of bytes; an unknown word makes no rule."""
    with pytest.raises(ValidationError):
        Terms.model_validate(terms)


def test_it_survives_the_store() -> None:
    """A record's value says all of a rule."""
    rule = Rule(name="r", made_ms=5_000, queue="q", client="c", seconds=60, limit=10, body=7)
    assert Rule.from_json(rule.to_json()) == rule
    assert rule.until_ms == 65_000


def test_costs_of_all_gateways_are_one() -> None:
    """What gateways say of a rule is added up; what was said of one that it has replaced is not."""
    rule = Rule(name="r", made_ms=2)
    cost = Cost(messages=1, bytes=10, left_out=2)
    accounts = [
        Account(instance="gateway-1", rule="r", made_ms=2, cost=cost),
        Account(instance="gateway-2", rule="r", made_ms=2, cost=cost),
        Account(instance="gateway-2", rule="r", made_ms=1, cost=cost),
        Account(instance="gateway-2", rule="s", made_ms=2, cost=cost),
    ]
    assert len({account.key for account in accounts}) == len(accounts)
    [told] = captured([rule], accounts, rule.until_ms - 1)
    assert (told.cost, told.ended) == (Cost(messages=2, bytes=20, left_out=4), False)
    assert captured([rule], accounts, rule.until_ms)[0].ended


def test_what_others_have() -> None:
    """Of a rule's limit, what other gateways have taken or claimed is not there, of those that are gone too."""
    rule = Rule(name="r", made_ms=2)
    accounts = [
        Account(instance="gateway-1", rule="r", made_ms=2, cost=Cost(bytes=7), claimed=9),
        Account(instance="gateway-2", rule="r", made_ms=2, cost=Cost(bytes=100), claimed=10),
        Account(instance="gateway-3", rule="r", made_ms=2, claimed=1000),
        Account(instance="gateway-1", rule="r", made_ms=1, claimed=5),
    ]
    assert taken_by_others(rule, "gateway-3", accounts) == 109


@pytest.mark.parametrize(
    ("body", "whole", "text"),
    [
        (b"", True, ""),
        ("grün".encode(), True, "grün"),
        ("grü".encode()[:-1], False, "gr"),
        ("grü".encode()[:-1], True, None),
        (b"\xff\xfe", False, None),
        (b"a\0b", True, None),
    ],
)
def test_text(body: bytes, whole: bool, text: str | None) -> None:
    """UTF-8 is text, also where the last character was cut; anything else is bytes."""
    assert text_of(body, whole=whole) == text
