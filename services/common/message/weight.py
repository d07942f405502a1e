"""What messages weigh: all that is carried of them. Bodies may be the smaller part, properties take up to a frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Sized
from operator import itemgetter
from typing import Final

from services.common.message.alike import total
from services.common.message.facts import EXCHANGE, KEY, Facts

FRAME_BYTES: Final = 4 << 20
"""Of messages in one frame between services. One message that is larger goes alone, so that a frame holds no more than
the largest message does, and stays far below what a peer takes.
"""
BESIDE: Final = 64
"""Bytes of a message in a frame beside properties and body: its uid, its part of columns and runs."""

_FACTS: Final = 64  # bytes of facts besides their address
_EXCHANGE, _KEY = itemgetter(EXCHANGE), itemgetter(KEY)


def weight(properties: Sequence[bytes], bodies: Sequence[Sized]) -> int:
    """Bytes of properties and bodies, those that messages have in common counted for each."""
    return total(properties) + sum(map(len, bodies))


def facts_weight(facts: Collection[Facts]) -> int:
    """Bytes of facts, each of which is said once."""
    if len(facts) == 1:
        (only,) = facts
        return _FACTS + len(only.exchange) + len(only.routing_key)
    return _FACTS * len(facts) + sum(map(len, map(_EXCHANGE, facts))) + sum(map(len, map(_KEY, facts)))
