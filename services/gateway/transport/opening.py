"""What a peer begins with: TLS (RFC 8446, section 5.1), HTTP, or a protocol that speaks for itself. Pure."""

from __future__ import annotations

import enum

_HANDSHAKE = 0x16  # content type of a TLS record; its version begins with 3 in every version of TLS
_MAJOR = 3
_GET = b"GET "  # how a WebSocket begins (RFC 6455, section 4.1)


class Opening(enum.Enum):
    """Told by the first bytes."""

    TLS = "TLS"
    WEBSOCKET = "WebSocket"
    PLAIN = "plain"


def opening_of(data: bytes) -> Opening | None:
    """None while there is too little to tell."""
    if data[:4] == _GET:
        return Opening.WEBSOCKET
    if _GET.startswith(data) or data == bytes([_HANDSHAKE]):
        return None
    return Opening.TLS if data[0] == _HANDSHAKE and data[1] == _MAJOR else Opening.PLAIN
