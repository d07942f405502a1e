"""What a selector reckons with: text, numbers, truth values; None is NULL, and what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias

Value: TypeAlias = Any
"""str, int, float, bool or None; or anything else that a header may be, which equals nothing and is not NULL."""

LookUp: TypeAlias = Callable[[str], Value]
"""The value of an identifier, of one message."""

Evaluate: TypeAlias = Callable[[LookUp], Value]


class Kind(Enum):
    """What a term gives, where that can be said before there is a message."""

    TRUTH = "a truth value"
    NUMBER = "a number"
    TEXT = "text"
    ANY = "any value"


_KINDS: Final[dict[type, Kind]] = {bool: Kind.TRUTH, int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.TEXT}
_PLAIN: Final = (int, float, str)


def kind_of(value: Value) -> Kind:
    """ANY of NULL, and of what no term is compared with."""
    return _KINDS.get(type(value), Kind.ANY)


def plain(value: Value) -> Value:
    """A header's value as selectors see it: decimals as numbers, times as milliseconds since 1970."""
    if type(value) in _KINDS:
        return value
    for kind in _PLAIN:
        if isinstance(value, kind):  # protocols have types of their own, for one number many
            return kind(value)
    if isinstance(value, Decimal):
        return float(value)
    return int(value.timestamp() * 1000) if isinstance(value, datetime) else value
