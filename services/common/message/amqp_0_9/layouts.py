"""Attributes of many properties at a time, where each message has an id, a header of its own.

Properties of one layout have the same fields at the same places, and so do their headers. Some octets of theirs show
that they have it: the flags, what says how long each field is, and names, types and sizes in headers; with those of the
fields that a broker acts on these say everything that headers do not, and that headers can be read. So a message takes
one look at its octets instead of a walk over its fields.
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
    WIRE_TYPES,
    Spans,
    may_say,
    seeming,
    spans_of,
)
from services.common.message.facts import Attributes
from services.common.message.remembered import ENTRIES, LONGEST
from services.common.message.table_structure import Ranges, structure
from services.common.recent import Recent

_MOST_RANGES: Final = 24  # of octets that are looked at: more looks are no better than a walk
_MOST_LAYOUTS: Final = 8  # of one length: an id may be longer by as much as a header is shorter
_FLAGS: Final = (0, 2)
_HEADERS: Final = HEADERS >> 8  # in the first octet of the flags
_SAID_BY: Final[dict[int, int]] = {  # by a field's bit: how many of its first octets say how long it is
    BITS[name]: 1 if wire == SHORT_STRING else 0 for name, wire in WIRE_TYPES.items()
}


class _Layout:
    """Which octets are looked at, and what those say that came."""

    __slots__ = ("known", "octets", "places")

    def __init__(self, places: Ranges) -> None:
        self.places = places
        self.octets: Callable[[bytes], Any] = itemgetter(
            *(begin if end - begin == 1 else slice(begin, end) for begin, end in places)
        )
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
        places = _places(properties, spans)
        if seems & DELAYED or len(places) > _MOST_RANGES:
            return  # the moment of delivery stands in headers, which are not looked at
        if self._entries >= ENTRIES:
            self._layouts.clear()
            self._entries = 0
        self._entries += 1
        layout = self._layout(len(properties), places)
        said = layout.octets(properties)
        layout.known[(said, seems) if seems else said] = attributes

    def _layout(self, length: int, places: Ranges) -> _Layout:
        layouts = self._layouts.setdefault(length, [])
        found = next((layout for layout in layouts if layout.places == places), None)
        if found is None:
            found = _Layout(places)
            layouts.insert(0, found)
            for dropped in layouts[_MOST_LAYOUTS:]:
                self._entries -= len(dropped.known)
            del layouts[_MOST_LAYOUTS:]
        return found


def _places(properties: bytes, spans: Spans) -> Ranges:
    """Of the octets that say what has this layout, and all that a broker acts on but headers."""
    places: Ranges = [_FLAGS]
    for bit, (start, end) in spans.items():
        if bit == HEADERS:
            places += [(start + begin, start + behind) for begin, behind in structure(properties[start:end])]
        else:
            places.append((start, end if bit & ACTED_ON else start + _SAID_BY[bit]))
    return _joined(places)


def _joined(ranges: Ranges) -> Ranges:
    """Those that touch as one; without the empty ones."""
    joined = ranges[:1]
    for begin, end in ranges[1:]:
        if begin == joined[-1][1]:
            joined[-1] = joined[-1][0], end
        elif begin < end:
            joined.append((begin, end))
    return joined
