"""What an engine tells and proposes to its peer, and what it puts up with; the same for all protocols."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`heartbeat` in seconds, 0 for none; `frame_max` and `max_message_size` in bytes.

    `product` and `version` are what the broker calls itself; version "" is that of the installed distribution.
    """

    frame_max: int = 131072
    channel_max: int = 2047
    heartbeat: int = 60
    max_message_size: int = 16 << 20
    product: str = "Hopline"
    version: str = ""
