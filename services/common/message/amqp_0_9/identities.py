"""What names messages whose properties are built alike, as those of one publisher mostly are: made out together.

Flags, and what says how long each field is, are the same octets at the same places; so ids stand at one place.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.amqp_0_9.fields import BITS, HEADERS, SAID_BY, TRACEPARENT, Spans, spans_of
from services.common.message.identities import Named
from services.common.message.same_places import SamePlaces, same_places
from services.common.message.table_check import check
from services.common.message.tables_alike import built

NAMING: Final = {BITS["message-id"]: "message_id", BITS["correlation-id"]: "correlation_id"}
TRACE_NAMES: Final = frozenset((b"traceparent", b"tracestate"))
LONGEST_HEADERS: Final = 64 << 10  # bytes that are searched for a context
_NAME: Final = TRACEPARENT[1:]
_LENGTH: Final = 4  # of a table, or of a long string
_SIZE: Final = 55  # of a traceparent of version 00 (W3C Trace Context, 3.2.2) …
_TRACE: Final = slice(3, 35)  # … and its trace id
_VALID: Final = re.compile("(?:00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})*").fullmatch


class _Differ(Exception):
    """They are not built alike, or it takes a closer look to know."""


def named_together(column: Sequence[bytes]) -> list[Named] | None:
    """As `MessageFormat.identities_of`; None where each has to be looked at by itself."""
    together = same_places(column, b"".join(column))
    if together is None:
        return None
    try:
        return [named for named in _named(column[0], together) if named.ids]
    except (_Differ, SyntaxFault, IndexError, struct.error):
        return None


def _named(first: bytes, together: SamePlaces) -> Iterator[Named]:
    spans = spans_of(first)
    lengths = (range(start, start + SAID_BY[bit]) for bit, (start, _) in spans.items())
    if not together.alike(chain(range(2), *lengths)):
        raise _Differ
    indexes = range(together.count)
    for bit, kind in NAMING.items():
        if bit in spans and spans[bit][0] + 1 < spans[bit][1]:
            yield Named(kind, indexes, _texts(together, spans[bit][0] + 1, spans[bit][1]))
    if HEADERS in spans and _NAME in together.joined:
        yield Named("trace_id", indexes, _trace_ids(first, together, spans))


def _trace_ids(first: bytes, together: SamePlaces, spans: Spans) -> list[str]:
    """Of contexts that are all valid."""
    start, end = spans[HEADERS]
    check(first, start + _LENGTH, end)
    if not together.alike(chain.from_iterable(range(*each) for each in built(first, start + _LENGTH, end))):
        raise _Differ
    found = field_table.entries(first[start:end], TRACE_NAMES)
    value = next((start + entry.value for entry in found if entry.name == _NAME), end)
    text = value + 1 + _LENGTH
    if len({entry.name for entry in found}) < len(found) or end - start > LONGEST_HEADERS:
        raise _Differ
    if first[value:text] != b"S" + _SIZE.to_bytes(_LENGTH, "big"):
        raise _Differ
    contexts = _texts(together, text, text + _SIZE)
    if not _VALID("".join(contexts)):
        raise _Differ
    return [context[_TRACE] for context in contexts]


def _texts(together: SamePlaces, start: int, end: int) -> list[str]:
    texts = together.texts(start, end)
    if texts is None:
        raise _Differ
    return texts
