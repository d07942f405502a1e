"""Annotations that a receiver adds to a message, by AMQP 1.0's outcome modified (part 3, section 3.4.5).

Those of a message of AMQP 1.0 are in its message annotations. In a format without any they are a header of the broker's
own, from which they become message annotations again; those whose names begin with "x-" are shown as headers besides,
as of a message of AMQP 1.0 (`format.py`), unless its publisher has one of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from services.common.errors import ResourceError, SyntaxFault
from services.common.message.amqp_1_0 import neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode
from services.common.message.amqp_1_0.encode import encode

HEADER: Final = "x-hopline-annotations"
BROKERS: Final = "x-"
"""How the names of annotations begin that are headers."""
MOST: Final = 16_384
"""Bytes of annotations that a message may gather."""
_FEW: Final = 64  # maps that are remembered: one outcome is about many messages


class Added(NamedTuple):
    """Headers of a message: its publisher's, and the annotations that were added to it; `shown` are both."""

    theirs: Mapping[str, Any]
    annotations: Mapping[Any, Any]
    shown: frozenset[str]


def written(said: Mapping[Any, Any]) -> bytes:
    """As queues are told of it. Names are symbols, also where a client calls them strings; numbers are reserved.

    Raises SyntaxFault for other keys, ResourceError where it is too much.
    """
    names = {v.Symbol(key) if isinstance(key, str) else key: value for key, value in said.items()}
    if not all(isinstance(key, v.Symbol | v.ULong) and str(key).isascii() for key in names):
        raise SyntaxFault("the names of annotations are symbols")
    return _bounded(encode(names)) if names else b""


def merged(before: Mapping[Any, Any], said: bytes) -> dict[Any, Any]:
    """Annotations with those that are said later: each in place of the one of its name. Raises ResourceError where it
    is too much, and more than before.
    """
    found = {**before, **_read(said)}
    raw = encode(found)
    if len(raw) > MOST and len(raw) > len(encode(dict(before))):
        _bounded(raw)
    return found


def with_both(first: bytes, then: bytes) -> bytes:
    """What is written that was said first and then; never too much where a message has taken both."""
    return encode({**_read(first), **_read(then)}) if first else then


def _bounded(raw: bytes) -> bytes:
    if len(raw) > MOST:
        raise ResourceError(f"annotations of {len(raw)} bytes: a message may gather {MOST}")
    return raw


@lru_cache(_FEW)
def _read(said: bytes) -> Mapping[Any, Any]:
    found: Mapping[Any, Any] = decode(said) if said else {}
    return found


# ------------------------------------------------------------------ of formats without annotations


def apart(headers: Mapping[str, Any]) -> Added:
    """Of headers as their format reads them; whatever else has that name is a header like any other."""
    raw = headers.get(HEADER)
    try:
        said = decode(raw) if isinstance(raw, bytes) else None
    except SyntaxFault:
        said = None
    match said:
        case [dict(annotations), list(names)]:
            shown = frozenset(map(str, names))
            theirs = {name: value for name, value in headers.items() if name != HEADER and name not in shown}
            return Added(theirs, annotations, shown)
    return Added(headers, {}, frozenset())


def header_of(annotations: Mapping[Any, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that stand for annotations, beside those of the publisher."""
    named = {str(key): value for key, value in annotations.items() if isinstance(key, str)}
    shown = {name for name in named if name.startswith(BROKERS) and name not in theirs and name != HEADER}
    ours = {HEADER: encode([dict(annotations), sorted(shown)])}
    return ours | {name: neutral.plain(named[name]) for name in sorted(shown)}
