"""What connection.tune proposes (section 1.4.2.5), and message compression as Broker-J negotiates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from services.gateway.protocols.limits import Limits

Compression: TypeAlias = Literal["none", "negotiated", "assumed"]
"""For which clients gzip is undone: none; those that say they do not understand it; those that say nothing, too."""


@dataclass(frozen=True, slots=True)
class Amqp09Limits(Limits):
    """`frame_max` in bytes; `heartbeat` in seconds, 0 for none.

    Bodies above `message_compression_threshold` bytes are gzipped for peers that understand it.
    """

    frame_max: int = 131072
    channel_max: int = 2047
    heartbeat: int = 60
    message_compression: Compression = "negotiated"
    message_compression_threshold: int = 100 << 10
