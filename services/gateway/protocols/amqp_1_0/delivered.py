"""A message as it is sent: in this protocol's form, and with what its header says of deliveries before this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from services.common.errors import SyntaxFault
from services.common.message import MessageFormat, format_named
from services.common.message.amqp_1_0 import added, composite, neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.format import NAME
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    MESSAGE_ANNOTATIONS,
    Header,
    Properties,
    sections,
)
from services.common.message.facts import Facts
from services.common.message.remembered import remembered

_LONGEST = (1 << 32) - 1  # milliseconds, or attempts, that a header can say
_TEXTS = ("message-id", "user-id", "type", "reply-to", "correlation-id", "content-type", "content-encoding")


def delivered(facts: Facts, properties: bytes, body: bytes, *, attempts: int) -> tuple[bytes, bytes]:
    """`attempts`: how often it was before, and that failed (section 3.2.1, first-acquirer and delivery-count)."""
    if facts.format != NAME:
        properties, body = _converted(facts, properties), _data(body)
    return (_again(attempts, properties) if attempts else properties), body


@remembered
def _again(attempts: int, properties: bytes) -> bytes:
    header, rest = Header(), properties
    found = sections(properties)
    if found and found[0].code == HEADER:
        header = composite.read(Header, decode_at(properties, found[0].value)[0])
        rest = properties[found[0].end :]
    count = min((header.delivery_count or 0) + attempts, _LONGEST)
    return composite.write(replace(header, first_acquirer=False, delivery_count=count)) + rest


def _data(body: bytes) -> bytes:
    return encode(v.Described(v.ULong(DATA), body))


@remembered
def _converted(facts: Facts, properties: bytes) -> bytes:
    """Of another format: what both have a name for. What cannot be read is left out."""
    its = format_named(facts.format)
    header = Header(facts.persistent or None, facts.priority or None, facts.ttl_ms and min(facts.ttl_ms, _LONGEST))
    simple, annotations = _headers(its, properties)
    return b"".join(
        (
            composite.write(header),
            _map(MESSAGE_ANNOTATIONS, annotations),
            composite.write(_properties(its, facts, properties)),
            _map(APPLICATION_PROPERTIES, simple),
        )
    )


def _headers(its: MessageFormat, properties: bytes) -> tuple[dict[str, object], dict[Any, object]]:
    """Those that application properties may have, and those that become annotations, which have a name of their own;
    with these, what receivers have added.
    """
    try:
        said = added.apart(its.headers(properties))
    except SyntaxFault:
        return {}, {}
    found = {name: neutral.typed(value) for name, value in said.theirs.items()}
    simple = {name: value for name, value in found.items() if neutral.is_simple(value)}
    others = {v.Symbol(name): value for name, value in found.items() if name not in simple and name.isascii()}
    return simple, {**others, **said.annotations}


def _properties(its: MessageFormat, facts: Facts, properties: bytes) -> Properties:
    try:
        return _readable_properties(its, facts, properties)
    except SyntaxFault:
        return Properties()


def _readable_properties(its: MessageFormat, facts: Facts, properties: bytes) -> Properties:
    octets = {name: its.octets(properties, name) for name in _TEXTS}
    texts = {name: _text(raw) for name, raw in octets.items()}
    return Properties(
        _id(octets["message-id"]),
        octets["user-id"],
        f"{facts.exchange}/{facts.routing_key}" if facts.exchange else facts.routing_key,
        texts["type"],
        texts["reply-to"],
        _id(octets["correlation-id"]),
        _ascii(texts["content-type"]),
        _ascii(texts["content-encoding"]),
        creation_time=its.timestamp_ms(properties),
    )


def _text(octets: bytes | None) -> str | None:
    """None of what is none."""
    try:
        return None if octets is None else octets.decode()
    except UnicodeDecodeError:
        return None


def _id(octets: bytes | None) -> str | bytes | None:
    """It may be binary as well (section 3.2.13)."""
    text = _text(octets)
    return octets if text is None else text


def _ascii(text: str | None) -> str | None:
    """Symbols are of ASCII."""
    return text if text is not None and text.isascii() else None


def _map(code: int, values: Mapping[Any, object]) -> bytes:
    return encode(v.Described(v.ULong(code), dict(values))) if values else b""
