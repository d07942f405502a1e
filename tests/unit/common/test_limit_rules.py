"""Broker-J's connection limits: what rules say, and which of them counts."""

from __future__ import annotations

import pytest

from services.common.errors import SyntaxFault
from services.common.limit_rules import Bound, parse


def test_a_file() -> None:
    """Comments, quotes, spellings and continued lines are read as in Broker-J."""
    rules = parse("""
        # of the shop
        CONFIG log_all=true default-frequency-period=1000
        CLT shop connection_limit=10 connectionFrequencyLimit=60/1m
        clt "the clerks" port=amqps \\
            connection-limit=3 connection_frequency_limit=5
        CLT all BLOCK port=ALL
    """)
    assert rules.of("shop", (), "amqp") == Bound(count=10, frequencies={60.0: 60})
    assert rules.of("anna", ["the clerks"], "amqps") == Bound(count=3, frequencies={1.0: 5})
    assert rules.of("anna", ["the clerks"], "amqp") == Bound(blocked=True)


@pytest.mark.parametrize(
    ("period", "seconds"),
    [("second", 1), ("Minute", 60), ("HOUR", 3600), ("m", 60), ("90s", 90), ("1h1m1s", 3661), ("PT2m", 120)],
)
def test_periods(period: str, seconds: float) -> None:
    """In words, or as ISO 8601 has them."""
    assert parse(f"CLT anna connection_frequency_limit=2/{period}").of("anna", (), "").frequencies == {seconds: 2}


def test_the_tightest() -> None:
    """Of several rules for one counts; a user's own go before its groups', those before all others'."""
    rules = parse("""
        CLT anna connection_limit=5 connection_frequency_limit=9/s
        CLT anna connection_limit=3 connection_frequency_limit=2/h
        CLT clerks connection_limit=2
        CLT others connection_limit=1
        CLT ALL connection_limit=7
    """)
    assert rules.of("anna", ["clerks"], "amqp") == Bound(count=3, frequencies={1.0: 9, 3600.0: 2})
    assert rules.of("bert", ["clerks", "others"], "amqp") == Bound(count=1)
    assert rules.of("carl", (), "amqp") == Bound(count=7)


def test_no_limit() -> None:
    """Negative numbers, no period, and no rules at all are none."""
    rules = parse("CONFIG default_frequency_period=-1\nCLT anna connection_limit=-1 connection_frequency_limit=5")
    assert rules.of("anna", (), "amqp").is_none
    assert parse("").of("anna", (), "amqp").is_none


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CLT", "Not enough tokens at line 1"),
        ("\nACL ALLOW anna ALL", "Unrecognised initial token 'ACL' at line 2"),
        ("CLT anna limit=3", "Unknown connection limit property: limit at line 1"),
        ("CLT anna connection_limit", r"no equals\) 'connection_limit' at line 1"),
        ("CLT anna connection_limit=", r"no value\) 'connection_limit' at line 1"),
        ("CLT anna connection_limit=many", "'many' is no number at line 1"),
        ("CLT anna connection_limit=1 connection-limit=2", "already been defined at line 1"),
        ("CLT anna connection_frequency_limit=2/fortnight", "'fortnight' is no period"),
    ],
)
def test_what_is_no_rule(text: str, why: str) -> None:
    """Is told with its line."""
    with pytest.raises(SyntaxFault, match=why):
        parse(text)
