"""What is sure of messages while nothing is put on file: what is on record, and nothing of what is not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.common.trace import IN_FLIGHT, UNKNOWN, Copy, Journey, Message

_UNSURE: Final = {"", IN_FLIGHT, UNKNOWN}
"""Fates that claim nothing."""


def unsure(journeys: Sequence[Journey]) -> list[Journey]:
    """The same ways. No copy waits, or is lost, that has not ended: its next step may have been taken already."""
    return [each.model_copy(update={"messages": [_unsure(message) for message in each.messages]}) for each in journeys]


def _unsure(message: Message) -> Message:
    return message.model_copy(update={"copies": [_of(copy) for copy in message.copies]})


def _of(copy: Copy) -> Copy:
    return copy if copy.fate in _UNSURE else copy.model_copy(update={"fate": UNKNOWN})
