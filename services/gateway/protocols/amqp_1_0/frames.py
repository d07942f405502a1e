"""Frames of AMQP 1.0 (part 2, section 2.3): a head of eight bytes, and what a performative and its payload take."""

from __future__ import annotations

import struct
from typing import Final

HEAD: Final = struct.Struct(">IBBH")  # size of all, data offset in words of four bytes, type, channel
AMQP: Final = 0
SASL: Final = 1
MIN_MAX_FRAME_SIZE: Final = 512  # section 2.8.16
BEAT: Final = HEAD.pack(HEAD.size, 2, AMQP, 0)
"""A frame without a body (section 2.4.5)."""


def frame(kind: int, channel: int, body: bytes) -> bytes:
    """One with no extended header."""
    return HEAD.pack(HEAD.size + len(body), 2, kind, channel) + body
