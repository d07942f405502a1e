"""AND, OR and NOT of what is true, false, or unknown (JMS 3.8.1.2). What is no truth value is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.selectors.values import Evaluate, LookUp, Value


def both(terms: Sequence[Evaluate]) -> Evaluate:
    """False where any is, true where all are."""
    return _decided_by(False, terms)


def either(terms: Sequence[Evaluate]) -> Evaluate:
    """True where any is, false where all are."""
    return _decided_by(True, terms)


def _decided_by(one: bool, terms: Sequence[Evaluate]) -> Evaluate:
    """What any of them is, or else the other where all are known."""
    other = not one

    def evaluate(look_up: LookUp) -> bool | None:
        known = True
        for term in terms:
            value: object = term(look_up)
            if value is one:
                return one
            if value is not other:
                known = False
        return other if known else None

    return evaluate


def negated(term: Evaluate) -> Evaluate:
    """What is unknown stays unknown."""

    def evaluate(look_up: LookUp) -> bool | None:
        value: Value = term(look_up)
        return not value if isinstance(value, bool) else None

    return evaluate


def is_null(term: Evaluate) -> Evaluate:
    """Known of everything."""
    return lambda look_up: term(look_up) is None


def is_not_null(term: Evaluate) -> Evaluate:
    """Known of everything."""
    return lambda look_up: term(look_up) is not None
