"""What our open says (part 2, section 2.7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from services.gateway.protocols.limits import Limits


@dataclass(frozen=True, slots=True)
class Amqp10Limits(Limits):
    """Each is set as its like of 0-9-1."""

    frame_max: int = 131072
    """Bytes of a frame that we take and send: max-frame-size."""

    channel_max: int = 2047

    heartbeat: int = 60
    """Seconds, 0 for none: idle-time-out, half of what we bear."""
