"""Messages that came in another protocol's form: what both have a name for, as class basic has it (section 1.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from services.common.errors import SyntaxFault
from services.common.message import MessageFormat, amqp_0_9, format_named
from services.common.message.facts import Facts

_TEXTS = ("content-type", "content-encoding", "correlation-id", "reply-to", "message-id", "type", "user-id")
_REMEMBERED = 4096


def native(
    facts: Sequence[Facts], properties: Sequence[bytes], bodies: Sequence[bytes]
) -> tuple[list[bytes], list[bytes]]:
    """Properties and bodies of messages, those of other formats converted."""
    told = [
        (raw, body) if its.format == amqp_0_9.NAME else (_properties(its, raw), format_named(its.format).content(body))
        for its, raw, body in zip(facts, properties, bodies, strict=True)
    ]
    return [raw for raw, _ in told], [body for _, body in told]


@lru_cache(_REMEMBERED)
def _properties(facts: Facts, properties: bytes) -> bytes:
    its = format_named(facts.format)
    texts, headers = _said(its, properties)
    if facts.ttl_ms is not None:
        texts["expiration"] = str(facts.ttl_ms)
    return amqp_0_9.compose(texts, headers, persistent=facts.persistent, priority=facts.priority)


def _said(its: MessageFormat, properties: bytes) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Nothing, of what cannot be read."""
    try:
        texts = {name: text for name in _TEXTS if (text := its.text(properties, name)) is not None}
        return texts, its.headers(properties)
    except SyntaxFault:
        return {}, {}
