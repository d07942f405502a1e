"""The message format of AMQP 1.0. `properties` are the sections before a message's body, as they came (section 3.2).

Headers, as all formats call them, are its application properties, and those of its message annotations that begin with
"x-": what a broker adds to a message (x-death) has lists in it, which application properties must not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from services.common.errors import BrokerError, ResourceError, SyntaxFault
from services.common.message import delayed
from services.common.message.amqp_1_0 import added, composite, neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode, decode_at, element_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    VALUE,
    Header,
    Properties,
    Section,
    sections,
)
from services.common.message.bounds import MOST_KEPT, MOST_READ
from services.common.message.facts import Attributes
from services.common.message.identities import Named, each
from services.common.message.remembered import ENTRIES, LONGEST, remembered
from services.common.question import LONGEST_ID
from services.common.telemetry.context import SpanContext, parse

NAME = "amqp-1-0"

_USUAL_PRIORITY = 4  # section 3.2.1
_NULL = 0x40  # its constructor (1.6.1)
_OF_TEXT = (0xA, 0xB)  # the upper halves of the constructors of octets and text (1.6.19 to 1.6.21)
_USER_ID = 1  # its place among the fields of the properties section
_IDENTITIES = ("message_id", "correlation_id")
_TRACEPARENT, _TRACESTATE = "traceparent", "tracestate"
_TRACED = _TRACEPARENT.encode()
# By the names of 0-9-1, which all formats go by.
_TEXTS = {
    "message-id": "message_id",
    "correlation-id": "correlation_id",
    "reply-to": "reply_to",
    "type": "subject",
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "user-id": "user_id",
    "timestamp": "creation_time",
    "group-id": "group_id",
}

T = TypeVar("T")
C = TypeVar("C", bound=composite.Composite)


class _Parts:
    """What is in properties, read when it is asked for. Raises SyntaxFault where it cannot be read."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._sections = {each.code: each for each in sections(raw)}

    def raw(self, code: int) -> bytes:
        """A section, b"" where it is not there."""
        section = self._sections.get(code)
        return self._raw[section.start : section.end] if section else b""

    def mentions(self, name: bytes) -> bool:
        """Whether the name is in there somewhere."""
        return name in self._raw

    def user_id(self) -> bytes | None:
        """That of the properties section, of which nothing else is read."""
        section = self._sections.get(PROPERTIES)
        found = element_at(self._raw, section.value, _USER_ID) if section else None
        if not isinstance(found, bytes | None):
            raise SyntaxFault("a message's user-id is no binary")
        return found

    @property
    def header(self) -> Header:
        return self._composite(HEADER, Header)

    @property
    def properties(self) -> Properties:
        return self._composite(PROPERTIES, Properties)

    def _composite(self, code: int, kind: type[C]) -> C:
        section = self._sections.get(code)
        return composite.read(kind, decode_at(self._raw, section.value, most=MOST_KEPT)[0] if section else [])

    def map(self, code: int, most: int = MOST_KEPT) -> dict[Any, Any]:
        """The map in a section, empty where that is not there."""
        section = self._sections.get(code)
        value = decode_at(self._raw, section.value, most=most)[0] if section else {}
        if not isinstance(value, dict):
            raise SyntaxFault(f"section {code:#04x} of a message is no map")
        return value

    def readable_map(self, code: int) -> dict[Any, Any]:
        """The same, empty too where it cannot be read."""
        try:
            return self.map(code)
        except SyntaxFault:
            return {}

    def replaced(self, news: dict[int, bytes]) -> bytes:
        """The same properties with other sections; b"" leaves one out."""
        its = {code: self._raw[each.start : each.end] for code, each in self._sections.items()}
        return b"".join(part for _, part in sorted((its | news).items()))


@remembered
def _read(properties: bytes) -> Attributes:
    """Ids are in the same section as the user's, and make each message's properties its own: they are passed over."""
    parts = _Parts(properties)
    context = _context(parts)
    said = delayed.of_annotations(parts.readable_map(MESSAGE_ANNOTATIONS)) if delayed.annotated(properties) else None
    return _attributes(parts.raw(HEADER), parts.user_id(), bool(context and context.sampled), said)


def _attributes(header: bytes, user_id: bytes | None, sampled: bool, not_before: int | None) -> Attributes:
    short = len(header) + len(user_id or b"") <= LONGEST
    return (_known if short else _known.__wrapped__)(header, user_id, sampled, not_before)


@lru_cache(ENTRIES)
def _known(header: bytes, user_id: bytes | None, sampled: bool, not_before: int | None) -> Attributes:
    """Equal ones are the same object."""
    its = _Parts(header).header
    return Attributes(
        bool(its.durable),
        _USUAL_PRIORITY if its.priority is None else its.priority,
        its.ttl,
        not_before,
        None if user_id is None else user_id.decode(errors="replace"),
        sampled=sampled,
    )


def _context(parts: _Parts) -> SpanContext | None:
    """Annotations come first: who adds them on the way does not touch what the application says."""
    if not parts.mentions(_TRACED):
        return None
    for code in (MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES):
        found = parts.readable_map(code)
        if isinstance(parent := found.get(_TRACEPARENT), str | bytes):
            state = found.get(_TRACESTATE)
            return parse(parent, state if isinstance(state, str | bytes) else None)
    return None


def _text_of(value: object) -> str | None:
    """Of an id of any type, or of another property."""
    match value:
        case None:
            return None
        case bytes():
            return value.decode(errors="replace")
        case UUID() | str() | int():
            return str(value)
    return None


def _octets(body: bytes, section: Section) -> bytes | None:
    """Of a section that is text, bytes or null. No other is looked into: it may have any number of values."""
    if body[section.value] == _NULL:
        return b""
    if body[section.value] >> 4 not in _OF_TEXT:
        return None
    value = decode(body[section.value : section.end])
    return value.encode() if isinstance(value, str) else bytes(value)


def _section(code: int, value: Mapping[Any, Any]) -> bytes:
    return encode(v.Described(v.ULong(code), dict(value))) if value else b""


class Amqp10Format:
    """See services.common.message.MessageFormat."""

    name = NAME

    def attributes(self, properties: bytes) -> Attributes:
        """As MessageFormat says."""
        return _read(properties)

    def headers(self, properties: bytes) -> Mapping[str, Any]:
        """As MessageFormat says."""
        parts = _Parts(properties)
        said = neutral.plain_map(parts.map(MESSAGE_ANNOTATIONS))
        ours = {name: value for name, value in said.items() if name.startswith(added.BROKERS)}
        return ours | neutral.plain_map(parts.map(APPLICATION_PROPERTIES))

    def header(self, properties: bytes, name: str) -> Any:  # noqa: ANN401 - as its type says
        """As MessageFormat says."""
        return self.headers(properties).get(name)

    def with_headers(self, properties: bytes, headers: Mapping[str, Any], *, drop_expiration: bool = False) -> bytes:
        """As MessageFormat says. What does not change keeps its type; application properties that cannot be read, or
        not at once, stay as they are.
        """
        parts = _Parts(properties)
        annotations, application = parts.readable_map(MESSAGE_ANNOTATIONS), parts.readable_map(APPLICATION_PROPERTIES)
        others = {key: value for key, value in annotations.items() if not str(key).startswith(added.BROKERS)}
        ours, theirs = _apart(headers, {str(key) for key in application})
        news = {MESSAGE_ANNOTATIONS: _section(MESSAGE_ANNOTATIONS, others | _kept(ours, annotations, v.Symbol))}
        if application or theirs:
            news[APPLICATION_PROPERTIES] = _section(APPLICATION_PROPERTIES, _kept(theirs, application, str))
        if drop_expiration and parts.header.ttl is not None:
            news[HEADER] = composite.write(replace(parts.header, ttl=None))
        return parts.replaced(news)

    def with_annotations(self, properties: bytes, said: bytes) -> bytes:
        """As MessageFormat says."""
        try:
            parts = _Parts(properties)
            its = parts.map(MESSAGE_ANNOTATIONS, MOST_READ)
        except SyntaxFault as fault:
            raise ResourceError(f"nothing can be added to a message's annotations: {fault.text}") from fault
        found = added.merged(its, said)
        return parts.replaced({MESSAGE_ANNOTATIONS: _section(MESSAGE_ANNOTATIONS, found)})

    def with_reply_to(self, properties: bytes, reply_to: str) -> bytes:
        """As MessageFormat says."""
        parts = _Parts(properties)
        return parts.replaced({PROPERTIES: composite.write(replace(parts.properties, reply_to=reply_to))})

    def more_keys(self, properties: bytes) -> tuple[tuple[str, ...], bytes]:
        """As MessageFormat says: none, a message of this protocol has one address."""
        return (), properties

    def identifying(self, properties: bytes) -> bytes:
        """As MessageFormat says."""
        if not _remembered_names(properties):
            return b""
        return properties if len(properties) <= LONGEST else self._shortened(properties)

    def _shortened(self, properties: bytes) -> bytes:
        parts = _Parts(properties)
        its, context = parts.properties, _context(parts)
        annotation = {v.Symbol(_TRACEPARENT): context.traceparent()} if context else {}
        named = Properties(message_id=_askable(its.message_id), correlation_id=_askable(its.correlation_id))
        some = annotation or named != Properties()
        return _section(MESSAGE_ANNOTATIONS, annotation) + composite.write(named) if some else b""

    def identities(self, properties: bytes) -> Sequence[tuple[str, str]]:
        """As MessageFormat says; raises SyntaxFault."""
        return _names(properties)

    def identifying_of(self, column: Sequence[bytes]) -> Sequence[bytes]:
        """As MessageFormat says."""
        return list(map(self.identifying, column))

    def identities_of(self, column: Sequence[bytes]) -> Sequence[Named]:
        """As MessageFormat says."""
        return each(self.identities, column)

    def trace_context(self, properties: bytes) -> SpanContext | None:
        """As MessageFormat says: of annotations, or of application properties, by the names `traceparent` and
        `tracestate`.
        """
        try:
            return _context(_Parts(properties))
        except SyntaxFault:
            return None

    def content(self, body: bytes) -> bytes:
        """As MessageFormat says: of data, or of a value that is text, bytes or null; else all of it as it came."""
        try:
            parts = [_octets(body, each) for each in sections(body) if each.code in (DATA, VALUE)]
        except BrokerError:
            return body
        return b"".join(part for part in parts if part is not None) if parts and None not in parts else body

    def timestamp_ms(self, properties: bytes) -> int | None:
        """As MessageFormat says (3.2.4, creation-time)."""
        moment = _Parts(properties).properties.creation_time
        return None if moment is None else int(moment)

    def text(self, properties: bytes, name: str) -> str | None:
        """As MessageFormat says; raises SyntaxFault. `expiration` is the header's time to live."""
        return _text_of(_named(properties, name))

    def octets(self, properties: bytes, name: str) -> bytes | None:
        """As MessageFormat says; of an id or user that is binary, these. Raises SyntaxFault."""
        if isinstance(value := _named(properties, name), bytes):
            return value
        text = _text_of(value)
        return None if text is None else text.encode()


def _named(properties: bytes, name: str) -> object:
    """A property by its name in 0-9-1, of any type."""
    parts = _Parts(properties)
    if name == "expiration":
        return parts.header.ttl
    return getattr(parts.properties, _TEXTS[name]) if name in _TEXTS else None


def _apart(headers: Mapping[str, Any], application: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those that become annotations, and those that are application properties."""
    ours = {
        name: value
        for name, value in headers.items()
        if not neutral.is_simple(value) or (name.startswith(added.BROKERS) and name not in application)
    }
    return ours, {name: value for name, value in headers.items() if name not in ours}


def _kept(headers: Mapping[str, Any], before: Mapping[Any, Any], key: type[str]) -> dict[Any, Any]:
    known = {str(name): (name, value) for name, value in before.items()}
    found: dict[Any, Any] = {}
    for name, value in headers.items():
        former, was = known.get(name, (key(name), None))
        found[former] = was if name in known and neutral.plain(was) == value else neutral.typed(value)
    return found


def _names(properties: bytes) -> list[tuple[str, str]]:
    parts = _Parts(properties)
    its = parts.properties
    found = [(kind, name) for kind in _IDENTITIES if (name := _text_of(getattr(its, kind)))]
    if context := _context(parts):
        found.append(("trace_id", f"{context.trace_id:032x}"))
    return found


def _askable(identity: T) -> T | None:
    """An id, unless nobody can ask for it: it may be of any length."""
    return identity if len(_text_of(identity) or "") <= LONGEST_ID else None


@remembered
def _remembered_names(properties: bytes) -> bool:
    try:
        return bool(_names(properties))
    except SyntaxFault:
        return False


FORMAT = Amqp10Format()
