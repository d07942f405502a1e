"""Annotations that a receiver adds to a message, by AMQP 1.0's outcome modified (part 3, section 3.4.5).

Those of a message of AMQP 1.0 are in its message annotations. In a format without any they are a header of the broker's
own, from which they become message annotations again; those whose names begin with "x-" are shown as headers besides,
as of a message of AMQP 1.0 (`format.py`), unless its publisher has one of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final, NamedTuple

from services.common.errors import NotAllowed, ResourceError, SyntaxFault
from services.common.message.amqp_1_0 import neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.passing import values_in
from services.common.message.broker_names import BROKER_NAMES

HEADER: Final = "x-hopline-annotations"
BROKERS: Final = "x-"
"""How the names of annotations begin that are headers."""
MOST: Final = 4096
"""Bytes of annotations that a message may gather."""
MOST_VALUES: Final = 256
"""Their values, with those within others and the names: whoever adds to them reads all of them."""
MOST_NUMBERS: Final = 32
"""Those that have numbers for names; a map of far more is read by nobody (`decode.py`)."""
_FEW: Final = 64  # maps that are remembered: one outcome is about many messages


class Added(NamedTuple):
    """Headers of a message: its publisher's, and the annotations that were added to it; `shown` are both."""

    theirs: Mapping[str, Any]
    annotations: Mapping[Any, Any]
    shown: frozenset[str]


def written(said: Mapping[Any, Any]) -> bytes:
    """As queues are told of it. Names are symbols, also where a client calls them strings; numbers are reserved.

    Raises SyntaxFault for other keys, NotAllowed for names of the broker's, ResourceError where it is too much.
    """
    names = {v.Symbol(key) if isinstance(key, str) else key: value for key, value in said.items()}
    if not all(_is_name(key) for key in names):
        raise SyntaxFault("the names of annotations are symbols")
    if theirs := sorted(BROKER_NAMES.intersection(names)):
        raise NotAllowed(f"receivers do not say '{theirs[0]}' of a message")
    return _bounded(names) if names else b""


def names_in(said: bytes) -> AbstractSet[Any]:
    """The names of what is written."""
    return _read(said).keys()


def merged(before: Mapping[Any, Any], said: bytes) -> dict[Any, Any]:
    """Annotations with those that are said later: each in place of the one of its name. Raises ResourceError where it
    is too much, and more than before.
    """
    found = {**before, **_read(said)}
    _bounded(found, before)
    return found


def with_both(first: bytes, then: bytes) -> bytes:
    """What is written that was said first and then. Raises ResourceError where it is too much."""
    return _bounded({**_read(first), **_read(then)}) if first else then


def _is_name(key: object) -> bool:
    return isinstance(key, v.Symbol | v.ULong) and str(key).isascii()


class _Size(NamedTuple):
    octets: int
    values: int
    numbers: int


_MOST: Final = _Size(MOST, MOST_VALUES, MOST_NUMBERS)


def _bounded(its: Mapping[Any, Any], before: Mapping[Any, Any] | None = None) -> bytes:
    """As it is written; raises ResourceError where it is too much of something, and more of that than before."""
    raw = encode(dict(its))
    size = _size(its, raw)
    if any(found > most for found, most in zip(size, _MOST, strict=True)):
        former = _size(before, encode(dict(before))) if before else _Size(0, 0, 0)
        if any(found > max(most, was) for found, most, was in zip(size, _MOST, former, strict=True)):
            raise ResourceError(
                f"annotations of {size.octets} bytes, {size.values} values and {size.numbers} numbers for names: "
                f"a message may gather {MOST}, {MOST_VALUES} and {MOST_NUMBERS}"
            )
    return raw


def _size(its: Mapping[Any, Any], raw: bytes) -> _Size:
    return _Size(len(raw), values_in(raw), sum(not isinstance(key, str) for key in its))


@lru_cache(_FEW)
def _read(said: bytes) -> Mapping[Any, Any]:
    found: Mapping[Any, Any] = decode(said) if said else {}
    return found


# ------------------------------------------------------------------ of formats without annotations


def apart(headers: Mapping[str, Any]) -> Added:
    """Of headers as their format reads them; whatever else has that name is a header like any other.

    A publisher may have written it: what could not be said of a message is left out.
    """
    raw = headers.get(HEADER)
    try:
        said = decode(raw) if isinstance(raw, bytes) else None
    except SyntaxFault:
        said = None
    match said:
        case [dict(said), list(names)]:
            annotations = {key: value for key, value in said.items() if _is_name(key) and key not in BROKER_NAMES}
            shown = frozenset(
                name for name in names if isinstance(name, str) and name.startswith(BROKERS) and name in annotations
            )
            theirs = {name: value for name, value in headers.items() if name != HEADER and name not in shown}
            return Added(theirs, annotations, shown)
    return Added(headers, {}, frozenset())


def header_of(annotations: Mapping[Any, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that stand for annotations, beside those of the publisher."""
    named = {str(key): value for key, value in annotations.items() if isinstance(key, str)}
    shown = {name for name in named if name.startswith(BROKERS) and name not in theirs}
    ours = {HEADER: encode([dict(annotations), sorted(shown)])}
    return ours | {name: neutral.plain(named[name]) for name in sorted(shown)}
