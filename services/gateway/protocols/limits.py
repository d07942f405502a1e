"""What an engine tells and proposes to its peer, and what it puts up with; the same for all protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Compression: TypeAlias = Literal["none", "negotiated", "assumed"]
"""For whom gzip is undone: nobody; who says that it does not understand it; who says nothing of it, too."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`heartbeat` in seconds, 0 for none; `frame_max` and `max_message_size` in bytes.

    Bodies above `compression_threshold` bytes are gzipped for peers that understand it.
    `product` and `version` are what the broker calls itself; version "" is that of the installed distribution.
    """

    frame_max: int = 131072
    channel_max: int = 2047
    heartbeat: int = 60
    max_message_size: int = 16 << 20
    compression: Compression = "negotiated"
    compression_threshold: int = 100 << 10
    product: str = "Hopline"
    version: str = ""
