"""Headers that tell how often a message was delivered before: RabbitMQ's quorum queues have them.

In AMQP 1.0 the header section says it (`amqp_1_0/delivered.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.common.message.amqp_0_9 import FORMAT


def counted(properties: Sequence[bytes], attempts: int, acquired: int) -> Sequence[bytes]:
    """With `attempts`, those that failed, and how often somebody was given it; the same where nobody was."""
    if not acquired:
        return properties
    said = {"x-acquired-count": acquired} | ({"x-delivery-count": attempts} if attempts else {})
    return [FORMAT.with_headers(each, {**_others(each), **said}) for each in properties]


def _others(properties: bytes) -> dict[str, object]:
    """Without what it says by itself, which was of another queue."""
    headers = dict(FORMAT.headers(properties))
    headers.pop("x-delivery-count", None)
    return headers
