"""What a connection's state means for the stream that it is on, whatever its protocol calls its states."""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from services.common.identity_enum import IdentityEnum


class Phase(Enum):
    """What becomes of what the peer sends in a state."""

    READ = auto()
    WAITING = auto()  # for the broker: it cannot be understood before that has answered
    LEAVING = auto()  # nothing more is asked: we close when what was asked before is answered
    CLOSING = auto()  # only its farewell is waited for, and a peer that does not send it soon can be cut off
    SAID_ALL = auto()  # nothing of it matters any more


class PhasedState(IdentityEnum):
    """States by what they wait for, each with its phase. All that is asked at each read is an attribute of a state."""

    waits_for_broker: bool
    leaving: bool
    closing: bool
    reads: bool
    is_over: bool
    """Nothing that comes from the peer matters but its farewell."""
    beats: bool
    """Our close is not said yet: a peer may wait for a sign of life before that."""

    def __new__(cls, waits_for: str, phase: Phase = Phase.READ) -> Self:
        """`waits_for` in words."""
        state = object.__new__(cls)
        state._value_ = waits_for
        state.waits_for_broker = phase is Phase.WAITING
        state.leaving = phase is Phase.LEAVING
        state.closing = phase is Phase.CLOSING
        state.reads = phase is not Phase.SAID_ALL
        state.beats = state.reads and not state.closing
        state.is_over = state.leaving or state.closing or not state.reads
        return state
