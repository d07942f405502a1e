"""What policies can say, and what that comes to beside arguments, held against a naive reading of RabbitMQ's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.arguments import policies
from services.common.arguments.reading import Wrong, said

_VALUES = {
    "max-length": st.integers(0, 9),
    "message-ttl": st.integers(0, 9),
    "delivery-limit": st.integers(-1, 9),
    "overflow": st.sampled_from(["drop-head", "reject-publish"]),
    "dead-letter-exchange": st.sampled_from(["a", "b"]),
    "dead-letter-routing-key": st.sampled_from(["k", "l"]),
    "dead-letter-strategy": st.sampled_from(["at-most-once", "at-least-once"]),
    "message-deduplication": st.booleans(),
    "cache-size": st.integers(1, 9),
    "cache-ttl": st.integers(1, 9),
}
_tables = st.fixed_dictionaries({}, optional=_VALUES)
_limits = st.fixed_dictionaries({}, optional={word: _VALUES[word] for word in sorted(policies.LIMITS & _VALUES.keys())})


@given(_tables, _tables, _limits)
def test_arguments_policies_and_operators(
    own: dict[str, object], policy: dict[str, object], limits: dict[str, object]
) -> None:
    """Of limits the lowest counts, whoever says it, and none is higher than any; of the rest, arguments go before."""
    effective = policies.effective(
        said({f"x-{word}": value for word, value in own.items()}), policies.merged(policy, limits)
    )
    for word in _VALUES:
        told = [table[word] for table in (own, policy, limits) if word in table]
        expected = min([each for each in told if each != -1], default=-1) if word in limits | _LIMITS else told[0:1]
        found = effective.get(f"x-{word}")
        if not told:
            assert found is None
        else:
            assert found == (expected[0] if isinstance(expected, list) else expected)


_LIMITS = dict.fromkeys(policies.LIMITS)


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize(
    ("word", "right", "wrong", "impossible"),
    [
        ("max-length", 1, "1", -1),
        ("message-ttl", 1, "1", 1 << 50),
        ("expires", 1, True, 0),
        ("delivery-limit", -1, 1.5, -2),
    ],
)
def test_words(operator: bool, word: str, right: object, wrong: object, impossible: object) -> None:
    """A right value passes; one of a wrong type, and an impossible one, are told with the word."""
    policies.check({word: right}, operator=operator)
    for value in (wrong, impossible):
        with pytest.raises(Wrong, match=word):
            policies.check({word: value}, operator=operator)


def test_what_is_no_word() -> None:
    """An unknown word, nothing at all, and what operators may not say."""
    for definition, operator in (({"federation-upstream": "x"}, False), ({}, False), ({"overflow": "drop-head"}, True)):
        with pytest.raises(Wrong):
            policies.check(definition, operator=operator)
    policies.check({"ha-mode": "all", "queue-mode": "lazy"}, operator=False)


@pytest.mark.parametrize(
    ("word", "right", "wrong", "impossible"),
    [
        ("message-deduplication", True, 1, None),
        ("cache-size", 5, "5", 0),
        ("cache-ttl", 5, True, 1 << 50),
        ("dead-letter-strategy", "at-least-once", 1, "never"),
    ],
)
def test_words_that_operators_may_not_say(word: str, right: object, wrong: object, impossible: object) -> None:
    """The same of these, in policies."""
    policies.check({word: right}, operator=False)
    for value, operator in ((wrong, False), (impossible, False), (right, True)):
        with pytest.raises(Wrong, match=word):
            policies.check({word: value}, operator=operator)
