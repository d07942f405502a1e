"""The fields of the properties of class basic (section 4.2.6.1 for their flags, 1.8 for the fields): where each stands.

Nothing is decoded here: a field is skipped by its type, and headers are only searched for names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from services.common.errors import SyntaxFault
from services.common.message import delayed, sender_selected
from services.common.message.same_places import same_places

SHORT_STRING, TABLE, _OCTET, _TIMESTAMP = -1, -4, 1, 8

# (name, wire type), first flag bit first.
PROPERTIES = (
    ("content-type", SHORT_STRING),
    ("content-encoding", SHORT_STRING),
    ("headers", TABLE),
    ("delivery-mode", _OCTET),
    ("priority", _OCTET),
    ("correlation-id", SHORT_STRING),
    ("reply-to", SHORT_STRING),
    ("expiration", SHORT_STRING),
    ("message-id", SHORT_STRING),
    ("timestamp", _TIMESTAMP),
    ("type", SHORT_STRING),
    ("user-id", SHORT_STRING),
    ("app-id", SHORT_STRING),
    ("cluster-id", SHORT_STRING),
)
BITS = {name: 0x8000 >> index for index, (name, _) in enumerate(PROPERTIES)}
WIRE_TYPES = dict(PROPERTIES)
ORDER = tuple(BITS.values())
SAID_BY = {  # by a field's bit: how many of its first octets say how long it is
    BITS[name]: {SHORT_STRING: 1, TABLE: 4}.get(wire, 0) for name, wire in WIRE_TYPES.items()
}

HEADERS = BITS["headers"]
DELIVERY_MODE = BITS["delivery-mode"]
PRIORITY = BITS["priority"]
REPLY_TO = BITS["reply-to"]
EXPIRATION = BITS["expiration"]
USER_ID = BITS["user-id"]
ACTED_ON = DELIVERY_MODE | PRIORITY | REPLY_TO | EXPIRATION | USER_ID
_UNKNOWN_FLAGS = 0x0003  # unused, and the continuation flag: class basic has no second word of flags
SAMPLED = 0x0001  # stands for Attributes.sampled among the flags that are acted on
COPIED = 0x0002  # likewise for Attributes.copied
DELAYED = 0x10000  # likewise, where headers say when it may be delivered

FLAGS = struct.Struct(">H")
_LENGTH = struct.Struct(">I")

# How a header that carries W3C Trace Context begins; then come the type, a length of four bytes, and the text.
TRACEPARENT = b"\x0btraceparent"
_C, _CC = ord("C"), b"CC"  # how those end that name further routing keys
_SAMPLED_DIGITS = frozenset(b"%c" % digit for digit in b"13579bdf")
_SAMPLED_BY_DIGIT = bytes(SAMPLED if b"%c" % octet in _SAMPLED_DIGITS else 0 for octet in range(256))
_TRACE_FLAGS = len(TRACEPARENT) + 1 + 4 + 53  # offset of the two hex digits


Spans = dict[int, tuple[int, int]]


@lru_cache(maxsize=1024)
def _layout(flags: int) -> tuple[tuple[int, int], ...]:
    """(bit, wire type) of the fields that are there."""
    if flags & _UNKNOWN_FLAGS:
        raise SyntaxFault(f"unknown property flags {flags:#06x}")
    return tuple((BITS[name], wire) for name, wire in PROPERTIES if flags & BITS[name])


def spans_of(properties: bytes) -> Spans:
    """Where each field begins and ends, by its flag bit."""
    spans: Spans = {}
    position = 2
    try:
        for bit, wire in _layout(FLAGS.unpack_from(properties)[0]):
            start = position
            if wire == SHORT_STRING:
                position += 1 + properties[position]
            elif wire == TABLE:
                position += 4 + _LENGTH.unpack_from(properties, position)[0]
            else:
                position += wire
            spans[bit] = (start, position)
    except (IndexError, struct.error) as error:
        raise SyntaxFault("the content properties end early") from error
    if position != len(properties):
        raise SyntaxFault("the content properties have another length than their flags say")
    return spans


def acted_on(properties: bytes, spans: Spans) -> tuple[int, bytes]:
    """The bytes of the fields that a broker acts on, and which they are; with what headers seem to say."""
    (flags,) = FLAGS.unpack_from(properties)
    facts = b"".join([properties[start:end] for bit, (start, end) in spans.items() if bit & ACTED_ON])
    if flags & HEADERS and (may := may_say(properties)):
        return flags & ACTED_ON | seeming(properties, may), facts
    return flags & ACTED_ON, facts


def may_say(properties: bytes) -> int:
    """What the headers of one message, or of several, may say to a broker; right in what it leaves out, and cheap."""
    sampled = SAMPLED if TRACEPARENT in properties else 0
    # One byte is found, or not, in a fifth of the time of two.
    copied = COPIED if _C in properties and _CC in properties else 0
    return sampled | copied | (DELAYED if delayed.seems(properties) else 0)


def seeming(properties: bytes, may: int) -> int:
    """Which of the things that headers `may` say they seem to say, by a search for their names: nothing is decoded."""
    sampled = SAMPLED if may & SAMPLED and _is_sampled(properties) else 0
    copied = COPIED if may & COPIED and sender_selected.seems(properties) else 0
    return sampled | copied | (DELAYED if may & DELAYED and delayed.seems(properties) else 0)


def seeming_of(column: Sequence[bytes], joined: bytes) -> Sequence[int] | None:
    """`seeming` of each of some properties, which are also given joined; None where none of them seems to say anything.

    Traces are mostly all there is to it, at one place in properties of one length: then a slice of all is looked at.
    """
    may = may_say(joined)
    if not may:
        return None
    if may == SAMPLED and (together := same_places(column, joined)):
        at = column[0].find(TRACEPARENT)
        digit = at + _TRACE_FLAGS + 1
        names = range(at, at + len(TRACEPARENT))
        alone = joined.count(TRACEPARENT) == together.count
        if at > 0 and digit < together.length and alone and together.alike(names):
            return together.octets(digit).translate(_SAMPLED_BY_DIGIT)
    return [seeming(properties, may) for properties in column]


def _is_sampled(properties: bytes) -> bool:
    """Whether the text of a traceparent has the sampled flag: the lowest bit of its last hex digit."""
    at = properties.find(TRACEPARENT)
    digit = properties[at + _TRACE_FLAGS + 1 : at + _TRACE_FLAGS + 2]
    return at > 0 and digit in _SAMPLED_DIGITS
