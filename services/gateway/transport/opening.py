"""What a peer begins with: TLS (RFC 8446, section 5.1), or the header of a protocol that speaks for itself. Pure."""

from __future__ import annotations

import enum

_HANDSHAKE = 0x16  # content type of a TLS record; its version begins with 3 in every version of TLS
_MAJOR = 3


class Opening(enum.Enum):
    """Told by the first bytes."""

    TLS = "TLS"
    PLAIN = "plain"


def opening_of(data: bytes) -> Opening | None:
    """None while there is too little to tell."""
    if not data or (data[0] == _HANDSHAKE and len(data) == 1):
        return None
    return Opening.TLS if data[0] == _HANDSHAKE and data[1] == _MAJOR else Opening.PLAIN
