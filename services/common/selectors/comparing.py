"""Comparisons (JMS 3.8.1.1): unknown with NULL, false of values of different kinds. Only numbers have an order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from services.common.selectors.values import Evaluate, Kind, LookUp, Value, kind_of

Compare = Callable[[Value, Value], bool]

EQUALITIES: Final[Mapping[str, Compare]] = {"=": operator.eq, "<>": operator.ne}
ORDERS: Final[Mapping[str, Compare]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COMPARE: Final = {**EQUALITIES, **ORDERS}


def compared(left: Evaluate, sign: str, right: Evaluate) -> Evaluate:
    """Whether both have that relation."""
    compare, ordered = _COMPARE[sign], sign in ORDERS

    def evaluate(look_up: LookUp) -> bool | None:
        one, other = left(look_up), right(look_up)
        if one is None or other is None:
            return None
        kind = kind_of(one)
        if kind is not kind_of(other) or kind is Kind.ANY or (ordered and kind is not Kind.NUMBER):
            return False
        return compare(one, other)

    return evaluate


def compared_to(name: str, sign: str, constant: Value) -> Evaluate:
    """The same of an identifier and a constant of a kind that has such a relation: most of all that is asked."""
    compare, kind = _COMPARE[sign], kind_of(constant)

    def evaluate(look_up: LookUp) -> bool | None:
        value = look_up(name)
        if value is None:
            return None
        return kind_of(value) is kind and compare(value, constant)

    return evaluate


def between(value: Evaluate, least: Evaluate, most: Evaluate) -> Evaluate:
    """Both ends included. False where one comparison is false, whatever the other is."""
    above, below = compared(value, ">=", least), compared(value, "<=", most)

    def evaluate(look_up: LookUp) -> bool | None:
        first, second = above(look_up), below(look_up)
        if first is False or second is False:
            return False
        return None if first is None or second is None else True

    return evaluate


def among(value: Evaluate, texts: frozenset[str]) -> Evaluate:
    """Whether it is one of these."""

    def evaluate(look_up: LookUp) -> bool | None:
        found = value(look_up)
        return None if found is None else isinstance(found, str) and found in texts

    return evaluate
