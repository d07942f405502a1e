"""Attributes of many properties at a time, where each message has an id, a header of its own.

Properties of one layout have the same fields at the same places. A few octets of theirs show that they have it: the
flags, and what says how long each field is; with the octets of the fields that a broker acts on these say everything
that headers do not. So a message takes one look at its octets instead of a walk over its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from services.common.errors import BrokerError
from services.common.message.amqp_0_9.fields import (
    ACTED_ON,
    BITS,
    DELAYED,
    HEADERS,
    SHORT_STRING,
    TABLE,
    WIRE_TYPES,
    Spans,
    may_say,
    seeming,
    spans_of,
)
from services.common.message.facts import Attributes
from services.common.message.remembered import ENTRIES, LONGEST
from services.common.recent import Recent

_MOST_OCTETS: Final = 64  # that are looked at: a longer look is no better than a walk
_MOST_LAYOUTS: Final = 8  # of one length: an id may be longer by as much as a header is shorter
_FLAGS: Final = (0, 1)
_HEADERS: Final = HEADERS >> 8  # in the first octet of the flags
_SAID_BY: Final[dict[int, int]] = {  # by a field's bit: how many of its first octets say how long it is
    BITS[name]: {SHORT_STRING: 1, TABLE: 4}.get(wire, 0) for name, wire in WIRE_TYPES.items()
}


class _Layout:
    """Which octets are looked at, and what those say that came."""

    __slots__ = ("known", "octets", "places")

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places = places
        self.octets: Callable[[bytes], Any] = itemgetter(*places)
        self.known: dict[object, Attributes] = {}  # by the octets, and by what headers seem to say if they do


class Layouts:
    """Those that came lately."""

    def __init__(self, read: Callable[[bytes], Attributes]) -> None:
        """`read` gives the attributes of one message's properties, equal ones as one object, and raises BrokerError."""
        self._read = read
        self._layouts: dict[int, list[_Layout]] = {}  # by the length of properties, the last made first
        self._entries = 0
        self._came: Recent[Attributes] = Recent()

    def attributes(self, column: Sequence[bytes]) -> list[Attributes]:
        """Of each of some properties, at least one, as `read` gives them: up to the first that it refuses."""
        first, count = column[0], len(column)
        if column[-1] == first and column.count(first) == count:
            return self._one(first) * count
        may = may_say(b"".join(column))
        found, layouts = list[Attributes](), self._layouts
        for properties in column:
            for layout in layouts.get(len(properties), ()):
                said = layout.octets(properties)
                # Of these very properties, not of the layout: others may have the same places without any headers.
                if may and properties[0] & _HEADERS and (seems := seeming(properties, may)):
                    said = said, seems
                if (attributes := layout.known.get(said)) is not None:
                    found.append(attributes)
                    break
            else:
                one = self._one(properties)
                if not one:
                    break
                if len(properties) <= LONGEST and self._came.again(one):
                    self._learn(properties, one[0])
                found += one
        return found

    def _one(self, properties: bytes) -> list[Attributes]:
        """Of one message; none when they are refused."""
        try:
            return [self._read(properties)]
        except BrokerError:
            return []

    def _learn(self, properties: bytes, attributes: Attributes) -> None:
        spans = spans_of(properties)
        seems = seeming(properties, may_say(properties)) if HEADERS in spans else 0
        places = _places(spans)
        if seems & DELAYED or len(places) > _MOST_OCTETS:
            return  # the moment of delivery stands in headers, which are not looked at
        if self._entries >= ENTRIES:
            self._layouts.clear()
            self._entries = 0
        self._entries += 1
        layout = self._layout(len(properties), places)
        said = layout.octets(properties)
        layout.known[(said, seems) if seems else said] = attributes

    def _layout(self, length: int, places: tuple[int, ...]) -> _Layout:
        layouts = self._layouts.setdefault(length, [])
        found = next((layout for layout in layouts if layout.places == places), None)
        if found is None:
            found = _Layout(places)
            layouts.insert(0, found)
            for dropped in layouts[_MOST_LAYOUTS:]:
                self._entries -= len(dropped.known)
            del layouts[_MOST_LAYOUTS:]
        return found


def _places(spans: Spans) -> tuple[int, ...]:
    """Of the octets that say what has this layout, and all that a broker acts on but headers."""
    places = [*_FLAGS]
    for bit, (start, end) in spans.items():
        places += range(start, end if bit & ACTED_ON else start + _SAID_BY[bit])
    return tuple(places)
