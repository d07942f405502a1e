"""The message format of the 0-9-1 family (and 0-8, 0-9): the properties of class basic.

`properties` is the payload of a content header frame from the property flags on (section 4.2.6.1). A field is skipped,
not decoded, unless somebody asked for it; the facts a broker acts on are remembered by the bytes they were read from.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, TypeVar

from services.common.errors import PreconditionFailed, ResourceError, SyntaxFault
from services.common.message import delayed, field_table, sender_selected
from services.common.message.amqp_1_0 import added
from services.common.message.bounds import LITTLE, MOST_KEPT, MOST_READ, MOST_SENT
from services.common.message.facts import Attributes
from services.common.message.remembered import ENTRIES, LONGEST
from services.common.telemetry.context import SpanContext, parse
from services.common.topology.direct_reply import PSEUDO_QUEUE

NAME = "amqp-0-9"

_DIRECT = PSEUDO_QUEUE.encode()

_SHORT_STRING, _TABLE, _OCTET, _TIMESTAMP = -1, -4, 1, 8

# (name, wire type), first flag bit first.
_PROPERTIES = (
    ("content-type", _SHORT_STRING),
    ("content-encoding", _SHORT_STRING),
    ("headers", _TABLE),
    ("delivery-mode", _OCTET),
    ("priority", _OCTET),
    ("correlation-id", _SHORT_STRING),
    ("reply-to", _SHORT_STRING),
    ("expiration", _SHORT_STRING),
    ("message-id", _SHORT_STRING),
    ("timestamp", _TIMESTAMP),
    ("type", _SHORT_STRING),
    ("user-id", _SHORT_STRING),
    ("app-id", _SHORT_STRING),
    ("cluster-id", _SHORT_STRING),
)
_BITS = {name: 0x8000 >> index for index, (name, _) in enumerate(_PROPERTIES)}
_WIRE_TYPES = dict(_PROPERTIES)
_ORDER = tuple(_BITS.values())

_HEADERS = _BITS["headers"]
_DELIVERY_MODE = _BITS["delivery-mode"]
_PRIORITY = _BITS["priority"]
_REPLY_TO = _BITS["reply-to"]
_EXPIRATION = _BITS["expiration"]
_USER_ID = _BITS["user-id"]
_ACTED_ON = _DELIVERY_MODE | _PRIORITY | _REPLY_TO | _EXPIRATION | _USER_ID
_NAMING = {_BITS["message-id"]: "message_id", _BITS["correlation-id"]: "correlation_id"}
_UNKNOWN_FLAGS = 0x0003  # unused, and the continuation flag: class basic has no second word of flags
_SAMPLED = 0x0001  # stands for Attributes.sampled among the flags that are acted on
_COPIED = 0x0002  # likewise for Attributes.copied
_DELAYED = 0x10000  # likewise, where headers say when it may be delivered

_FLAGS = struct.Struct(">H")
_LENGTH = struct.Struct(">I")
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")

# How a header that carries W3C Trace Context begins; then come the type, a length of four bytes, and the text.
_TRACEPARENT = b"\x0btraceparent"
_C, _CC = ord("C"), b"CC"  # how those end that name further routing keys
_TRACE_NAMES = frozenset((b"traceparent", b"tracestate"))
_TRACE_FLAGS = len(_TRACEPARENT) + 1 + 4 + 53  # offset of the two hex digits
_LONGEST_HEADERS = 64 << 10  # bytes that are searched for a context

_LONGEST_TEXT = 255
_LATEST = (1 << 63) - 1  # Unix ms: for what is later, other protocols have no room

_K = TypeVar("_K")
_V = TypeVar("_V")
_Spans = dict[int, tuple[int, int]]


@lru_cache(maxsize=1024)
def _layout(flags: int) -> tuple[tuple[int, int], ...]:
    """(bit, wire type) of the fields that are there."""
    if flags & _UNKNOWN_FLAGS:
        raise SyntaxFault(f"unknown property flags {flags:#06x}")
    return tuple((_BITS[name], wire) for name, wire in _PROPERTIES if flags & _BITS[name])


def _spans(properties: bytes) -> _Spans:
    """Where each field begins and ends, by its flag bit."""
    spans: _Spans = {}
    position = 2
    try:
        for bit, wire in _layout(_FLAGS.unpack_from(properties)[0]):
            start = position
            if wire == _SHORT_STRING:
                position += 1 + properties[position]
            elif wire == _TABLE:
                position += 4 + _LENGTH.unpack_from(properties, position)[0]
            else:
                position += wire
            spans[bit] = (start, position)
    except (IndexError, struct.error) as error:
        raise SyntaxFault("the content properties end early") from error
    if position != len(properties):
        raise SyntaxFault("the content properties have another length than their flags say")
    return spans


def _facts(properties: bytes) -> tuple[int, bytes]:
    """The bytes of the fields that a broker acts on, and which they are.

    Walks as `_spans` does, but remembers no places: this is done for every message with properties of its own.
    """
    position, facts = 2, b""
    try:
        (flags,) = _FLAGS.unpack_from(properties)
        for bit, wire in _layout(flags):
            start = position
            if wire == _SHORT_STRING:
                position += 1 + properties[position]
            elif wire == _TABLE:
                position += 4 + _LENGTH.unpack_from(properties, position)[0]
            else:
                position += wire
            if bit & _ACTED_ON:
                facts += properties[start:position]
    except (IndexError, struct.error) as error:
        raise SyntaxFault("the content properties end early") from error
    if position != len(properties):
        raise SyntaxFault("the content properties have another length than their flags say")
    if flags & _HEADERS:
        at = properties.find(_TRACEPARENT)
        # One byte is found, or not, in a fifth of the time of two.
        if at > 0 or (_C in properties and properties.find(_CC) > 0) or delayed.seems(properties):
            return flags & _ACTED_ON | _seems(properties, at), facts
    return flags & _ACTED_ON, facts


def _seems(properties: bytes, at: int) -> int:
    """What headers seem to say, by a search for their names: nothing is decoded. `at` is a traceparent, maybe."""
    sampled = _SAMPLED if at > 0 and _is_sampled(properties, at) else 0
    copied = _COPIED if sender_selected.seems(properties) else 0
    return sampled | copied | (_DELAYED if delayed.seems(properties) else 0)


def _is_sampled(properties: bytes, at: int) -> bool:
    """Whether the text of a traceparent at `at` has the sampled flag: the lowest bit of its last hex digit."""
    digit = properties[at + _TRACE_FLAGS + 1 : at + _TRACE_FLAGS + 2]
    return digit.isalnum() and digit in b"13579bdf"


def _check_headers(properties: bytes) -> None:
    """Whoever reads them does so at once."""
    span = _spans(properties).get(_HEADERS)
    if span and field_table.has_many(properties, span[0], MOST_SENT):
        raise PreconditionFailed(f"invalid message: more than {MOST_SENT} fields in its headers")


def _octets(properties: bytes, span: tuple[int, int]) -> bytes:
    """Of a short string."""
    return properties[span[0] + 1 : span[1]]


def _text(properties: bytes, span: tuple[int, int]) -> str:
    return _octets(properties, span).decode(errors="replace")


def _expiration(raw: bytes) -> int:
    """Milliseconds; RabbitMQ's rule: an integer, not negative, nothing around it."""
    milliseconds = int(raw) if _NUMBER.fullmatch(raw) else -1
    if not 0 <= milliseconds < 1 << 63:
        raise PreconditionFailed(f"invalid expiration '{raw.decode(errors='replace')}'")
    return milliseconds


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _short_string(text: str | bytes) -> bytes:
    raw = _raw(text)
    if len(raw) > _LONGEST_TEXT:
        raise SyntaxFault("a content property is longer than 255 bytes")
    return bytes((len(raw),)) + raw


def _read(properties: bytes, seems: int) -> Attributes:
    spans = _spans(properties)
    get = spans.get
    mode, priority, expiration = get(_DELIVERY_MODE), get(_PRIORITY), get(_EXPIRATION)
    user, reply_to = get(_USER_ID), get(_REPLY_TO)
    not_before, delay = delayed.of_table(properties[slice(*spans[_HEADERS])]) if seems & _DELAYED else (None, None)
    return Attributes(
        mode is not None and properties[mode[0]] == 2,
        0 if priority is None else properties[priority[0]],
        None if expiration is None else _expiration(_octets(properties, expiration)),
        not_before,
        None if user is None else _text(properties, user),
        reply_to is not None and _octets(properties, reply_to) == _DIRECT,
        bool(seems & _SAMPLED),
        bool(seems & _COPIED),
        delay,
    )


def _assemble(properties: bytes, spans: _Spans, replaced: Mapping[int, bytes | None]) -> bytes:
    """The properties with some fields replaced, or dropped where None stands."""
    flags, parts = 0, [b""]
    for bit in _ORDER:
        field = replaced[bit] if bit in replaced else properties[slice(*spans[bit])] if bit in spans else None
        if field is not None:
            flags |= bit
            parts.append(field)
    parts[0] = _FLAGS.pack(flags)
    return b"".join(parts)


def compose(texts: Mapping[str, str | bytes], headers: Mapping[str, Any], *, persistent: bool, priority: int) -> bytes:
    """Properties of these; texts that are too long for a property are left out."""
    fields: dict[int, bytes | None] = {
        _BITS[name]: _short_string(text) for name, text in texts.items() if len(_raw(text)) <= _LONGEST_TEXT
    }
    fields[_DELIVERY_MODE] = bytes((2 if persistent else 1,))
    fields[_PRIORITY] = bytes((priority,)) if priority else None
    fields[_HEADERS] = field_table.encode(headers) if headers else None
    return _assemble(b"", {}, fields)


def _put(table: dict[_K, _V], key: _K, value: _V) -> _V:
    """The value of `key`, which is `value` unless there was one; the table stays bounded."""
    if len(table) >= ENTRIES:
        table.clear()
    return table.setdefault(key, value)


class Amqp09Format:
    """See services.common.message.MessageFormat."""

    name = NAME

    def __init__(self) -> None:
        self._memo: dict[bytes, Attributes] = {}  # by the properties
        self._known: dict[tuple[int, bytes], Attributes] = {}  # by the fields that matter and their bytes
        self._interned: dict[Attributes, Attributes] = {}

    def attributes(self, properties: bytes) -> Attributes:
        """As MessageFormat says; raises PreconditionFailed for an expiration that is no number, like RabbitMQ, and for
        more headers than can be read at once.
        """
        found = self._memo.get(properties)
        return self._learn(properties) if found is None else found

    def knows(self, properties: bytes) -> bool:
        """Whether such properties came before, lately."""
        return properties in self._memo

    def _learn(self, properties: bytes) -> Attributes:
        facts = _facts(properties)
        attributes = self._known.get(facts)
        if attributes is None:
            read = _read(properties, facts[0])
            attributes = _put(self._interned, read, read)
            if not facts[0] & _DELAYED:  # what headers say is not among the fields that it is known by
                _put(self._known, facts, attributes)
        if len(properties) <= LONGEST:
            _put(self._memo, properties, attributes)
        elif len(properties) > LITTLE:
            _check_headers(properties)
        return attributes

    def headers(self, properties: bytes, most: int = MOST_KEPT) -> Mapping[str, Any]:
        """As MessageFormat says."""
        span = _spans(properties).get(_HEADERS)
        return {} if span is None else field_table.decode(properties[slice(*span)], most=most)

    def header(self, properties: bytes, name: str) -> Any:  # noqa: ANN401 - as its type says
        """As MessageFormat says; of repeated ones the last."""
        octets = name.encode()
        if octets not in properties or (span := _spans(properties).get(_HEADERS)) is None:
            return None
        found = field_table.find(properties[slice(*span)], {octets}, MOST_KEPT)
        return found[-1][1] if found else None

    def with_headers(self, properties: bytes, headers: Mapping[str, Any], *, drop_expiration: bool = False) -> bytes:
        """As MessageFormat says."""
        replaced: dict[int, bytes | None] = {_HEADERS: field_table.encode(headers) if headers else None}
        if drop_expiration:
            replaced[_EXPIRATION] = None
        return _assemble(properties, _spans(properties), replaced)

    def with_table(self, properties: bytes, names: AbstractSet[bytes], table: bytes) -> bytes:
        """The same properties with a field table in place of their headers of some names; the others stay as written.

        Raises SyntaxFault, though not for all that cannot be read.
        """
        spans = _spans(properties)
        headers = properties[slice(*spans[_HEADERS])] if _HEADERS in spans else field_table.EMPTY
        return _assemble(properties, spans, {_HEADERS: field_table.joined(headers, names, table)})

    def with_annotations(self, properties: bytes, said: bytes) -> bytes:
        """As MessageFormat says: in headers."""
        try:
            its = added.apart(self.headers(properties, MOST_READ))
        except SyntaxFault as fault:
            raise ResourceError(f"nothing can be added to a message's headers: {fault.text}") from fault
        news = added.header_of(added.merged(its.annotations, said), its.theirs)
        names = {name.encode() for name in its.shown | news.keys()}
        return self.with_table(properties, names, field_table.encode(field_table.tellable(news)))

    def with_reply_to(self, properties: bytes, reply_to: str) -> bytes:
        """As MessageFormat says."""
        return _assemble(properties, _spans(properties), {_REPLY_TO: _short_string(reply_to)})

    def with_text(self, properties: bytes, name: str, text: str | None) -> bytes:
        """The same properties with another text in one that is a short string, or without it."""
        return _assemble(properties, _spans(properties), {_BITS[name]: None if text is None else _short_string(text)})

    def more_keys(self, properties: bytes) -> tuple[tuple[str, ...], bytes]:
        """As MessageFormat says: those of the headers `CC` and `BCC`, of which nobody else sees the latter."""
        spans = _spans(properties)
        if _HEADERS not in spans:
            return (), properties
        table = properties[slice(*spans[_HEADERS])]
        keys, told = sender_selected.read(table)
        return keys, properties if told is table else _assemble(properties, spans, {_HEADERS: told})

    def identifying(self, properties: bytes) -> bytes:
        """As MessageFormat says."""
        # The upper bits of each byte of the flags: for hundreds of thousands of messages a second, this is all.
        named = properties[0] & 0x04 or properties[1] & 0x80
        if not named and not (properties[0] & 0x20 and _TRACEPARENT in properties):
            return b""
        return properties if len(properties) <= LONGEST else self._shortened(properties)

    def _shortened(self, properties: bytes) -> bytes:
        spans = _spans(properties)
        kept = {bit: spans[bit] for bit in _NAMING if bit in spans}
        context = self.trace_context(properties)
        headers = field_table.encode({"traceparent": context.traceparent()}) if context else None
        return _assemble(properties, kept, {_HEADERS: headers})

    def identities(self, properties: bytes) -> list[tuple[str, str]]:
        """As MessageFormat says; raises SyntaxFault."""
        spans = _spans(properties)
        found = [(kind, _text(properties, spans[bit])) for bit, kind in _NAMING.items() if bit in spans]
        if _HEADERS in spans and (context := self.trace_context(properties)):
            found.append(("trace_id", f"{context.trace_id:032x}"))
        return [(kind, name) for kind, name in found if name]

    def trace_context(self, properties: bytes) -> SpanContext | None:
        """As MessageFormat says: of the headers `traceparent` and `tracestate`, unless one of them is repeated."""
        try:
            span = _spans(properties).get(_HEADERS)
            if span is None or span[1] - span[0] > _LONGEST_HEADERS:
                return None
            found = field_table.find(properties[slice(*span)], _TRACE_NAMES)
        except SyntaxFault:
            return None
        values = dict(found)
        if len(values) != len(found):
            return None
        return parse(values.get(b"traceparent"), values.get(b"tracestate"))

    def content(self, body: bytes) -> bytes:
        """As MessageFormat says."""
        return body

    def timestamp_ms(self, properties: bytes) -> int | None:
        """As MessageFormat says; here it is in seconds (4.2.5.4)."""
        seconds = self.text(properties, "timestamp")
        ms = 0 if seconds is None else int(seconds) * 1000
        return ms if seconds is not None and ms <= _LATEST else None

    def text(self, properties: bytes, name: str) -> str | None:
        """As MessageFormat says; numbers in decimal digits, None for headers and unknown names."""
        wire = _WIRE_TYPES.get(name, _TABLE)
        span = _spans(properties).get(_BITS.get(name, 0))
        if span is None or wire == _TABLE:
            return None
        if wire == _SHORT_STRING:
            return _text(properties, span)
        return str(int.from_bytes(properties[slice(*span)], "big"))

    def octets(self, properties: bytes, name: str) -> bytes | None:
        """As MessageFormat says."""
        if _WIRE_TYPES.get(name) != _SHORT_STRING:
            return None
        span = _spans(properties).get(_BITS[name])
        return None if span is None else _octets(properties, span)


FORMAT = Amqp09Format()
