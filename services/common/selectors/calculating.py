"""Arithmetic as Java has it: whole numbers stay whole, division cuts off, a remainder has the sign of the dividend."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from services.common.selectors.values import Evaluate, Kind, LookUp, Value, kind_of

Number: TypeAlias = int | float


def _divided(one: Number, other: Number) -> Number:
    if not (isinstance(one, int) and isinstance(other, int)):
        return one / other
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _remainder(one: Number, other: Number) -> Number:
    if not (isinstance(one, int) and isinstance(other, int)):
        return math.fmod(one, other)
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


_CALCULATE: Final[Mapping[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _remainder,
}  # fmt: skip


def calculated(left: Evaluate, sign: str, right: Evaluate) -> Evaluate:
    """NULL where a side is, or is no number; and where there is no result, of a division by zero for example."""
    calculate = _CALCULATE[sign]

    def evaluate(look_up: LookUp) -> Number | None:
        one, other = left(look_up), right(look_up)
        if kind_of(one) is not Kind.NUMBER or kind_of(other) is not Kind.NUMBER:
            return None
        try:
            return calculate(one, other)
        except (ArithmeticError, ValueError):
            return None

    return evaluate


def opposite(term: Evaluate) -> Evaluate:
    """NULL of what is no number."""

    def evaluate(look_up: LookUp) -> Value:
        value = term(look_up)
        return -value if kind_of(value) is Kind.NUMBER else None

    return evaluate


def same(term: Evaluate) -> Evaluate:
    """NULL of what is no number."""

    def evaluate(look_up: LookUp) -> Value:
        value = term(look_up)
        return value if kind_of(value) is Kind.NUMBER else None

    return evaluate
