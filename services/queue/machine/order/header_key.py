"""What a message is sorted by, or kept the last of: the text of one of its headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from services.common.errors import BrokerError
from services.common.message import format_named
from services.common.message.facts import Facts

KeyOf: TypeAlias = Callable[[Facts, bytes], str | None]
"""Of a message's facts and properties."""


def by_header(name: str) -> KeyOf:
    """None where a message has no such header, or none that can be read: it is for its consumers to find fault with."""

    def key_of(facts: Facts, properties: bytes) -> str | None:
        try:
            value = format_named(facts.format).header(properties, name)
        except BrokerError:
            return None
        return None if value is None else value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    return key_of
