"""When a message may be delivered, by what its publisher says: headers of 0-9, annotations of 1.0.

`x-delay` is that of RabbitMQ's plug-in for delayed messages, in ms from when it is received; the others are Broker-J's,
and say a moment, in Unix ms. What is no such number says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.message import field_table

_DELAY: Final = "x-delay"
_NOT_BEFORE: Final = "x-qpid-not-valid-before"
_DELIVERY_TIME: Final = "x-opt-delivery-time"
_HEADERS: Final = frozenset(name.encode() for name in (_DELAY, _NOT_BEFORE))
_A, _B = len(_DELAY), len(_NOT_BEFORE)
_A_FIELD, _B_FIELD = bytes((_A,)) + _DELAY.encode(), bytes((_B,)) + _NOT_BEFORE.encode()  # as they stand in a table
_ANNOTATIONS: Final = (_DELIVERY_TIME, _NOT_BEFORE)
_MOST: Final = 1 << 62


def seems(properties: bytes) -> bool:
    """Whether there may be such a header in some properties: right when it says no, and cheap."""
    # One byte is found, or not, in a fifth of the time of a name.
    return (_A in properties and _A_FIELD in properties) or (_B in properties and _B_FIELD in properties)


def of_table(table: bytes) -> tuple[int | None, int | None]:
    """The moment, and the delay, that the headers in a field table say, each if it does; raises SyntaxFault."""
    found = dict(field_table.find(table, _HEADERS))
    return _number(found.get(_NOT_BEFORE.encode())), _number(found.get(_DELAY.encode()))


def annotated(properties: bytes) -> bool:
    """Whether there may be such an annotation: right when it says no."""
    return any(name.encode() in properties for name in _ANNOTATIONS)


def of_annotations(annotations: Mapping[Any, Any]) -> int | None:
    """The moment that they say, if they do."""
    found = (_number(annotations.get(name)) for name in _ANNOTATIONS)
    return next((moment for moment in found if moment is not None), None)


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 < value < _MOST else None
