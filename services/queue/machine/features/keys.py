"""What a publisher tells a message from others by: RabbitMQ's plug-in has a header for it, all protocols an id."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from services.common.errors import BrokerError
from services.common.message import format_named
from services.common.message.facts import Facts

HEADER: Final = "x-deduplication-header"
_HEADER_OCTETS: Final = HEADER.encode()
_OCTETS: Final = 16  # of a key: that two are equal by chance does not happen


def key_of(facts: Facts, properties: bytes) -> bytes | None:
    """Of the header, or else of the message id, whatever its type; None where it has neither, or none can be read."""
    try:
        said = _said(facts.format, properties)
    except (BrokerError, UnicodeError):
        return None
    return blake2b(said, digest_size=_OCTETS).digest() if said else None


def _said(format_name: str, properties: bytes) -> bytes:
    its = format_named(format_name)
    if _HEADER_OCTETS in properties:  # else its headers need not be read
        value = its.header(properties, HEADER)
        if value is not None:
            return b"h" + (value if isinstance(value, bytes) else str(value).encode())
    message_id = its.octets(properties, "message-id")
    return b"i" + message_id if message_id else b""
