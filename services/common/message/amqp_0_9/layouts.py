"""Attributes of many properties at a time, where each message has an id, a header of its own.

Properties of one layout have the same fields at the same places. A few octets of theirs show that they have it: the
flags, and what says how long each field is; with the octets of the fields that a broker acts on these say everything
that headers do not, nor an expiration, which may be another in each message. So a message takes one look at its octets
instead of a walk over its fields; headers are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple

from services.common.errors import BrokerError
from services.common.message.amqp_0_9.expiration import milliseconds
from services.common.message.amqp_0_9.fields import (
    ACTED_ON,
    DELAYED,
    EXPIRATION,
    HEADERS,
    SAID_BY,
    Spans,
    may_say,
    seeming,
    seeming_of,
)
from services.common.message.facts import Attributes
from services.common.message.remembered import ENTRIES
from services.common.message.table_check import check
from services.common.message.tables_alike import TablesAlike
from services.common.recent import Recent

_MOST_OCTETS: Final = 64  # that are looked at: a longer look is no better than a walk
_MOST_LAYOUTS: Final = 8  # of one length: an id may be longer by as much as a header is shorter
_FLAGS: Final = (0, 1)
_HEADERS: Final = HEADERS >> 8  # in the first octet of the flags
_TOLD: Final = ACTED_ON & ~EXPIRATION  # fields of which all octets are looked at
_SIZE: Final = SAID_BY[HEADERS]  # of what says how long they are
_TTL: Final = Attributes._fields.index("ttl_ms")
_Key = tuple[tuple[int, ...], tuple[int, int] | None, tuple[int, int] | None]
"""Which octets are looked at, where headers are, and where an expiration is."""


class Looked(NamedTuple):
    """What was found where it was not known."""

    attributes: Attributes
    spans: Spans
    facts: tuple[int, bytes]
    """As `acted_on` gives them."""


class _Layout:
    """What those octets say that came."""

    __slots__ = ("expiration", "headers", "key", "known", "octets")

    def __init__(self, key: _Key) -> None:
        self.key = key
        places, headers, expiration = key
        self.octets: Callable[[bytes], Any] = itemgetter(*places)
        self.headers = TablesAlike(headers[0] + _SIZE, headers[1]) if headers else None
        self.expiration = slice(expiration[0] + SAID_BY[EXPIRATION], expiration[1]) if expiration else None
        # By the octets, and by what headers seem to say if they do; without an expiration.
        self.known: dict[object, Attributes] = {}


class Layouts:
    """Those that came lately."""

    def __init__(self, look: Callable[[bytes], Attributes | Looked]) -> None:
        """`look` gives the attributes of one message's properties, equal ones as one object, and raises BrokerError."""
        self.walked = 0
        """Values of headers that took a look at each."""
        self._look = look
        self._layouts: dict[int, list[_Layout]] = {}  # by the length of properties, the last made first
        self._entries = 0
        self._expiring: dict[tuple[Attributes, bytes], Attributes] = {}  # by those without an expiration, and by that
        self._came: Recent[int] = Recent()  # hashes of the layouts of some properties, with what is acted on

    def check(self, properties: bytes, headers: tuple[int, int]) -> None:
        """Raises SyntaxFault unless the headers that begin and end there can be read."""
        self.walked += check(properties, headers[0] + _SIZE, headers[1])

    def attributes(self, column: Sequence[bytes]) -> list[Attributes]:
        """Of each of some properties, at least one, as `look` gives them: up to the first that it refuses."""
        found = list[Attributes]()
        with suppress(BrokerError):
            self._add(column, found)
        return found

    def _add(self, column: Sequence[bytes], found: list[Attributes]) -> None:
        first, count = column[0], len(column)
        if column[-1] == first and column.count(first) == count:
            found += [self._one(first)] * count
            return
        layouts, seeming_each = self._layouts, seeming_of(column, b"".join(column)) or repeat(0)
        for properties, seems in zip(column, seeming_each, strict=False):
            for layout in layouts.get(len(properties), ()):
                said = layout.octets(properties)
                # Of these very properties, not of the layout: others may have the same places without any headers.
                if seems and properties[0] & _HEADERS:
                    said = said, seems
                if (attributes := layout.known.get(said)) is not None:
                    if headers := layout.headers:
                        self.walked += headers.check(properties)
                    if layout.expiration:
                        attributes = self._with_expiration(attributes, properties[layout.expiration])
                    found.append(attributes)
                    break
            else:
                found.append(self._one(properties))

    def _with_expiration(self, attributes: Attributes, raw: bytes) -> Attributes:
        found = self._expiring.get((attributes, raw))
        if found is None:
            if len(self._expiring) >= ENTRIES:
                self._expiring.clear()
            found = tuple.__new__(Attributes, (*attributes[:_TTL], milliseconds(raw), *attributes[_TTL + 1 :]))
            self._expiring[attributes, raw] = found
        return found

    def _one(self, properties: bytes) -> Attributes:
        """Of one message, of which something is learnt when more of its layout may follow."""
        looked = self._look(properties)
        if isinstance(looked, Attributes):
            return looked
        again = self._came.again((hash((_lasting(properties, looked), *looked.spans.values())),))
        if again and not looked.facts[0] & DELAYED:  # that moment stands in headers, which may differ
            self._learn(properties, looked)
        return looked.attributes

    def _learn(self, properties: bytes, looked: Looked) -> None:
        places = _places(looked.spans)
        if len(places) > _MOST_OCTETS:
            return
        if self._entries >= ENTRIES:
            self._layouts.clear()
            self._entries = 0
        self._entries += 1
        layout = self._layout(len(properties), (places, looked.spans.get(HEADERS), looked.spans.get(EXPIRATION)))
        said = layout.octets(properties)
        seems = seeming(properties, may_say(properties)) if layout.headers else 0
        attributes = looked.attributes
        layout.known[(said, seems) if seems else said] = (
            attributes._replace(ttl_ms=None) if layout.expiration else attributes
        )

    def _layout(self, length: int, key: _Key) -> _Layout:
        layouts = self._layouts.setdefault(length, [])
        found = next((layout for layout in layouts if layout.key == key), None)
        if found is None:
            found = _Layout(key)
            layouts.insert(0, found)
            for dropped in layouts[_MOST_LAYOUTS:]:
                self._entries -= len(dropped.known)
            del layouts[_MOST_LAYOUTS:]
        return found


def _lasting(properties: bytes, looked: Looked) -> tuple[int, bytes]:
    """What is acted on, without an expiration."""
    expiration = looked.spans.get(EXPIRATION)
    if expiration is None:
        return looked.facts
    start, end = expiration
    which, facts = looked.facts
    return which, facts.replace(properties[start:end], b"", 1)


def _places(spans: Spans) -> tuple[int, ...]:
    """Of the octets that say what has this layout, and all that a broker acts on but headers and an expiration."""
    places = [*_FLAGS]
    for bit, (start, end) in spans.items():
        places += range(start, end if bit & _TOLD else start + SAID_BY[bit])
    return tuple(places)
