"""Headers that tell how often a message was delivered before: RabbitMQ's quorum queues have them.

In AMQP 1.0 the header section says it (`amqp_1_0/delivered.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from services.common.errors import SyntaxFault
from services.common.message.amqp_0_9 import FORMAT

_LONGEST: Final = 2048  # octets of properties that are rewritten: in any client's frame there is room for two more


def counted(properties: Sequence[bytes], attempts: int, acquired: int) -> Sequence[bytes]:
    """With `attempts`, those that failed, and how often somebody was given it; the same where nobody was.

    So are properties that are long, or that cannot be read: they are their publisher's, and go on as they came.
    """
    if not acquired:
        return properties
    said = {"x-acquired-count": acquired} | ({"x-delivery-count": attempts} if attempts else {})
    return [_with(each, said) for each in properties]


def _with(properties: bytes, said: Mapping[str, object]) -> bytes:
    if len(properties) > _LONGEST:
        return properties
    try:
        return FORMAT.with_headers(properties, {**_others(properties), **said})
    except SyntaxFault:
        return properties


def _others(properties: bytes) -> dict[str, object]:
    """Without what it says by itself, which was of another queue."""
    headers = dict(FORMAT.headers(properties))
    headers.pop("x-delivery-count", None)
    return headers
