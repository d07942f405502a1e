"""Headers that tell how often a message was delivered before: RabbitMQ's quorum queues have them.

In AMQP 1.0 the header section says it (`amqp_1_0/delivered.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.amqp_0_9 import FORMAT

_ACQUIRED: Final = "x-acquired-count"
_FAILED: Final = "x-delivery-count"
_NAMES: Final = frozenset((_ACQUIRED.encode(), _FAILED.encode()))
_LONGEST: Final = 2048  # octets of properties that are rewritten: with two fields more they fit into any client's frame


def counted(properties: Sequence[bytes], attempts: int, acquired: int) -> Sequence[bytes]:
    """With `attempts`, those that failed, and how often a client was given it; the same where none was.

    Whatever else they say stays, byte for byte. So do all that are long, or that cannot be read: they are their
    publisher's, and go on as they came.
    """
    if not acquired:
        return properties
    said = field_table.encode({_ACQUIRED: acquired} | ({_FAILED: attempts} if attempts else {}))
    with_counts = {each: _with(each, said) for each in set(properties)}
    return [with_counts[each] for each in properties]


def _with(properties: bytes, said: bytes) -> bytes:
    """In place of what it says by itself, which was of another queue."""
    if len(properties) > _LONGEST:
        return properties
    try:
        return FORMAT.with_table(properties, _NAMES, said)
    except SyntaxFault:
        return properties
