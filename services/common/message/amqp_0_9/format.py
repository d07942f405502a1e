"""The message format of the 0-9-1 family (and 0-8, 0-9): the properties of class basic.

`properties` is the payload of a content header frame from the property flags on (section 4.2.6.1). A field is skipped,
not decoded, unless somebody asked for it; the facts a broker acts on are remembered by the bytes they were read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from services.common.errors import PreconditionFailed, ResourceError, SyntaxFault
from services.common.message import delayed, field_table, sender_selected
from services.common.message.amqp_0_9.expiration import milliseconds
from services.common.message.amqp_0_9.fields import (
    BITS,
    COPIED,
    DELAYED,
    DELIVERY_MODE,
    EXPIRATION,
    FLAGS,
    HEADERS,
    ORDER,
    PRIORITY,
    REPLY_TO,
    SAMPLED,
    SHORT_STRING,
    TABLE,
    TRACEPARENT,
    USER_ID,
    WIRE_TYPES,
    Spans,
    acted_on,
    spans_of,
)
from services.common.message.amqp_0_9.identities import LONGEST_HEADERS, NAMING, TRACE_NAMES, named_together
from services.common.message.amqp_0_9.layouts import Layouts, Looked
from services.common.message.amqp_1_0 import added
from services.common.message.bounds import LITTLE, MOST_KEPT, MOST_READ, MOST_SENT
from services.common.message.facts import Attributes
from services.common.message.identities import Named, each
from services.common.message.remembered import ENTRIES, LONGEST
from services.common.telemetry.context import SpanContext, parse
from services.common.topology.direct_reply import PSEUDO_QUEUE

NAME = "amqp-0-9"

_HEADERS = HEADERS >> 8  # in the first octet of the flags
_DIRECT = PSEUDO_QUEUE.encode()

_LONGEST_TEXT = 255
_FEW = 8  # to look at each of fewer takes less
_LATEST = (1 << 63) - 1  # Unix ms: for what is later, other protocols have no room

_K = TypeVar("_K")
_V = TypeVar("_V")


def _check_headers(properties: bytes) -> None:
    """Whoever reads them does so at once."""
    span = spans_of(properties).get(HEADERS)
    if span and field_table.has_many(properties, span[0], MOST_SENT):
        raise PreconditionFailed(f"invalid message: more than {MOST_SENT} fields in its headers")


def _headers(properties: bytes, most: int) -> dict[str, Any]:
    """Raises SyntaxFault for what cannot be read, and for more than `most` values."""
    span = spans_of(properties).get(HEADERS)
    return {} if span is None else field_table.decode(properties[slice(*span)], most=most)


def _octets(properties: bytes, span: tuple[int, int]) -> bytes:
    """Of a short string."""
    return properties[span[0] + 1 : span[1]]


def _text(properties: bytes, span: tuple[int, int]) -> str:
    return _octets(properties, span).decode(errors="replace")


def _names(properties: bytes) -> int:
    """Whether the flags say that there is an id: in each byte of them one bit."""
    return properties[0] & 0x04 or properties[1] & 0x80


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _short_string(text: str | bytes) -> bytes:
    raw = _raw(text)
    if len(raw) > _LONGEST_TEXT:
        raise SyntaxFault("a content property is longer than 255 bytes")
    return bytes((len(raw),)) + raw


def _read(properties: bytes, spans: Spans, seems: int) -> Attributes:
    get = spans.get
    mode, priority, expiration = get(DELIVERY_MODE), get(PRIORITY), get(EXPIRATION)
    user, reply_to = get(USER_ID), get(REPLY_TO)
    not_before, delay = delayed.of_table(properties[slice(*spans[HEADERS])]) if seems & DELAYED else (None, None)
    return Attributes(
        mode is not None and properties[mode[0]] == 2,
        0 if priority is None else properties[priority[0]],
        None if expiration is None else milliseconds(_octets(properties, expiration)),
        not_before,
        None if user is None else _text(properties, user),
        reply_to is not None and _octets(properties, reply_to) == _DIRECT,
        bool(seems & SAMPLED),
        bool(seems & COPIED),
        delay,
    )


def _assemble(properties: bytes, spans: Spans, replaced: Mapping[int, bytes | None]) -> bytes:
    """The properties with some fields replaced, or dropped where None stands."""
    flags, parts = 0, [b""]
    for bit in ORDER:
        field = replaced[bit] if bit in replaced else properties[slice(*spans[bit])] if bit in spans else None
        if field is not None:
            flags |= bit
            parts.append(field)
    parts[0] = FLAGS.pack(flags)
    return b"".join(parts)


def compose(
    texts: Mapping[str, str | bytes],
    headers: Mapping[str, Any],
    *,
    persistent: bool,
    priority: int,
    timestamp: int | None = None,
) -> bytes:
    """Properties of these, `timestamp` in seconds; texts that are too long for a property are left out."""
    fields: dict[int, bytes | None] = {
        BITS[name]: _short_string(text) for name, text in texts.items() if len(_raw(text)) <= _LONGEST_TEXT
    }
    fields[DELIVERY_MODE] = bytes((2 if persistent else 1,))
    fields[PRIORITY] = bytes((priority,)) if priority else None
    fields[BITS["timestamp"]] = None if timestamp is None else timestamp.to_bytes(8, "big")
    fields[HEADERS] = field_table.encode(headers) if headers else None
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
        self._layouts = Layouts(self._look)

    @property
    def walked(self) -> int:
        """Values of headers that took a look at each: most do not."""
        return self._layouts.walked

    def attributes(self, properties: bytes) -> Attributes:
        """As MessageFormat says; raises PreconditionFailed for an expiration that is no number, like RabbitMQ, and for
        more headers than can be read at once, and SyntaxFault for those that cannot be read.
        """
        found = self._memo.get(properties)
        return self._learn(properties).attributes if found is None else found

    def attributes_of(self, column: Sequence[bytes]) -> list[Attributes]:
        """Of each of some properties, as `attributes` gives them: up to the first for which that raises BrokerError."""
        return self._layouts.attributes(column)

    def _look(self, properties: bytes) -> Attributes | Looked:
        """As `attributes`; with what was looked at, when it was."""
        found = self._memo.get(properties)
        return self._learn(properties) if found is None else found

    def _learn(self, properties: bytes) -> Looked:
        if len(properties) > LITTLE:
            _check_headers(properties)
        spans = spans_of(properties)
        if HEADERS in spans:
            self._layouts.check(properties, spans[HEADERS])
        facts = acted_on(properties, spans)
        attributes = self._known.get(facts)
        if attributes is None:
            read = _read(properties, spans, facts[0])
            attributes = _put(self._interned, read, read)
            if not facts[0] & DELAYED:  # what headers say is not among the fields that it is known by
                _put(self._known, facts, attributes)
        if len(properties) <= LONGEST:
            _put(self._memo, properties, attributes)
        return Looked(attributes, spans, facts)

    def headers(self, properties: bytes) -> Mapping[str, Any]:
        """As MessageFormat says."""
        return _headers(properties, MOST_KEPT)

    def header(self, properties: bytes, name: str) -> Any:  # noqa: ANN401 - as its type says
        """As MessageFormat says; of repeated ones the last."""
        octets = name.encode()
        if octets not in properties or (span := spans_of(properties).get(HEADERS)) is None:
            return None
        found = field_table.find(properties[slice(*span)], {octets}, MOST_KEPT)
        return found[-1][1] if found else None

    def with_headers(self, properties: bytes, headers: Mapping[str, Any], *, drop_expiration: bool = False) -> bytes:
        """As MessageFormat says."""
        replaced: dict[int, bytes | None] = {HEADERS: field_table.encode(headers) if headers else None}
        if drop_expiration:
            replaced[EXPIRATION] = None
        return _assemble(properties, spans_of(properties), replaced)

    def with_table(self, properties: bytes, names: AbstractSet[bytes], table: bytes) -> bytes:
        """The same properties with a field table in place of their headers of some names; the others stay as written.

        Raises SyntaxFault, though not for all that cannot be read.
        """
        spans = spans_of(properties)
        headers = properties[slice(*spans[HEADERS])] if HEADERS in spans else field_table.EMPTY
        return _assemble(properties, spans, {HEADERS: field_table.joined(headers, names, table)})

    def with_annotations(self, properties: bytes, said: bytes) -> bytes:
        """As MessageFormat says: in headers."""
        try:
            its = added.apart(_headers(properties, MOST_READ))
        except SyntaxFault as fault:
            raise ResourceError(f"nothing can be added to a message's headers: {fault.text}") from fault
        news = added.header_of(added.merged(its.annotations, said), its.theirs)
        names = {name.encode() for name in its.shown | news.keys()}
        return self.with_table(properties, names, field_table.encode(field_table.tellable(news)))

    def with_reply_to(self, properties: bytes, reply_to: str) -> bytes:
        """As MessageFormat says."""
        return _assemble(properties, spans_of(properties), {REPLY_TO: _short_string(reply_to)})

    def with_text(self, properties: bytes, name: str, text: str | None) -> bytes:
        """The same properties with another text in one that is a short string, or without it."""
        return _assemble(properties, spans_of(properties), {BITS[name]: None if text is None else _short_string(text)})

    def more_keys(self, properties: bytes) -> tuple[tuple[str, ...], bytes]:
        """As MessageFormat says: those of the headers `CC` and `BCC`, of which nobody else sees the latter."""
        spans = spans_of(properties)
        if HEADERS not in spans:
            return (), properties
        table = properties[slice(*spans[HEADERS])]
        keys, told = sender_selected.read(table)
        return keys, properties if told is table else _assemble(properties, spans, {HEADERS: told})

    def identifying(self, properties: bytes) -> bytes:
        """As MessageFormat says."""
        if not _names(properties) and not (properties[0] & _HEADERS and TRACEPARENT in properties):
            return b""
        return properties if len(properties) <= LONGEST else self._shortened(properties)

    def identifying_of(self, column: Sequence[bytes]) -> Sequence[bytes]:
        """As MessageFormat says."""
        flags = {properties[:2] for properties in column}
        named, short = [bool(_names(each)) for each in flags], max(map(len, column)) <= LONGEST
        if all(named) and short:
            return column
        if not any(named):
            if TRACEPARENT not in b"".join(column):
                return ()
            if short and all(each[0] & _HEADERS for each in flags):
                return [properties if TRACEPARENT in properties else b"" for properties in column]
        return list(map(self.identifying, column))

    def identities_of(self, column: Sequence[bytes]) -> Sequence[Named]:
        """As MessageFormat says."""
        together = named_together(column) if len(column) >= _FEW else None
        return each(self.identities, column) if together is None else together

    def _shortened(self, properties: bytes) -> bytes:
        spans = spans_of(properties)
        kept = {bit: spans[bit] for bit in NAMING if bit in spans}
        context = self.trace_context(properties)
        headers = field_table.encode({"traceparent": context.traceparent()}) if context else None
        return _assemble(properties, kept, {HEADERS: headers})

    def identities(self, properties: bytes) -> list[tuple[str, str]]:
        """As MessageFormat says; raises SyntaxFault."""
        spans = spans_of(properties)
        found = [(kind, _text(properties, spans[bit])) for bit, kind in NAMING.items() if bit in spans]
        if HEADERS in spans and (context := self.trace_context(properties)):
            found.append(("trace_id", f"{context.trace_id:032x}"))
        return [(kind, name) for kind, name in found if name]

    def trace_context(self, properties: bytes) -> SpanContext | None:
        """As MessageFormat says: of the headers `traceparent` and `tracestate`, unless one of them is repeated."""
        try:
            span = spans_of(properties).get(HEADERS)
            if span is None or span[1] - span[0] > LONGEST_HEADERS:
                return None
            found = field_table.find(properties[slice(*span)], TRACE_NAMES)
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
        wire = WIRE_TYPES.get(name, TABLE)
        span = spans_of(properties).get(BITS.get(name, 0))
        if span is None or wire == TABLE:
            return None
        if wire == SHORT_STRING:
            return _text(properties, span)
        return str(int.from_bytes(properties[slice(*span)], "big"))

    def octets(self, properties: bytes, name: str) -> bytes | None:
        """As MessageFormat says."""
        if WIRE_TYPES.get(name) != SHORT_STRING:
            return None
        span = spans_of(properties).get(BITS[name])
        return None if span is None else _octets(properties, span)


FORMAT = Amqp09Format()
