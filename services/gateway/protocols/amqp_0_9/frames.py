"""Frames (section 4.2.3): type, channel, size, payload, end octet."""

from __future__ import annotations

import struct

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS = frozenset({METHOD, HEADER, BODY, HEARTBEAT})
END = 0xCE
END_OCTET = b"\xce"
OVERHEAD = 8  # bytes of a frame that are not its payload
MIN_FRAME_MAX = 4096  # section 1.2, frame-min-size

HEAD = struct.Struct(">BHI")


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One whole frame."""
    return b"".join((HEAD.pack(kind, channel, len(payload)), payload, END_OCTET))


BEAT = frame(HEARTBEAT, 0, b"")
