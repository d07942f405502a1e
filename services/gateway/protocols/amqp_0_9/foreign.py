"""Messages that came in another protocol's form: what both have a name for, as class basic has it (section 1.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.common.errors import SyntaxFault
from services.common.message import MessageFormat, amqp_0_9, field_table, format_named
from services.common.message.facts import Facts
from services.common.message.remembered import remembered

_LARGEST = (1 << 63) - 1
_TEXTS = ("content-type", "content-encoding", "correlation-id", "reply-to", "message-id", "type", "user-id")


def native(
    facts: Sequence[Facts], properties: Sequence[bytes], bodies: Sequence[bytes]
) -> tuple[list[bytes], list[bytes]]:
    """Properties and bodies of messages, those of other formats converted."""
    told = [
        (raw, body) if its.format == amqp_0_9.NAME else (_properties(its, raw), format_named(its.format).content(body))
        for its, raw, body in zip(facts, properties, bodies, strict=True)
    ]
    return [raw for raw, _ in told], [body for _, body in told]


@remembered
def _properties(facts: Facts, properties: bytes) -> bytes:
    its = format_named(facts.format)
    texts, headers = _texts(its, properties), _headers(its, properties)
    if facts.ttl_ms is not None:
        texts["expiration"] = str(facts.ttl_ms)
    return amqp_0_9.compose(
        texts,
        field_table.tellable({name: _in_field(value) for name, value in headers.items()}),
        persistent=facts.persistent,
        priority=facts.priority,
        timestamp=_seconds(its, properties),
    )


def _seconds(its: MessageFormat, properties: bytes) -> int | None:
    """Since 1970; None before that, for which class basic has no room, and of what cannot be read."""
    try:
        ms = its.timestamp_ms(properties)
    except SyntaxFault:
        return None
    return None if ms is None or ms < 0 else ms // 1000


def _in_field(value: Any) -> Any:  # noqa: ANN401 - any value
    """A value as fields have it: integers are signed; a larger one, which clients would read as a time, is text."""
    match value:
        case int() if value > _LARGEST:
            return str(value)
        case list():
            return [_in_field(each) for each in value]
        case Mapping():
            return {name: _in_field(each) for name, each in value.items()}
    return value


def _texts(its: MessageFormat, properties: bytes) -> dict[str, str | bytes]:
    """None, of what cannot be read."""
    try:
        found = {name: its.octets(properties, name) for name in _TEXTS}
    except SyntaxFault:
        return {}
    return {name: raw for name, raw in found.items() if raw is not None}


def _headers(its: MessageFormat, properties: bytes) -> Mapping[str, Any]:
    """None, of what cannot be read, or not at once."""
    try:
        return its.headers(properties)
    except SyntaxFault:
        return {}
