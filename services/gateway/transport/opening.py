"""What a peer begins with: TLS (RFC 8446, section 5.1), HTTP, or a protocol that speaks for itself. Pure."""

from __future__ import annotations

import enum

_HANDSHAKE = 0x16  # content type of a TLS record; its version begins with 3 in every version of TLS
_MAJOR = 3
_CLIENT_HELLO = 1  # type of a handshake message (RFC 8446, section 4)
_RECORD, _MESSAGE = 5, 4  # bytes of the header of a record, and of a message in it
_LONGEST_HELLO = 16 << 10  # bytes; those of clients have hundreds, with keys against quantum computers 2000
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


def is_too_long(hello: bytes) -> bool | None:
    """Whether TLS begins with a message that no client needs; None while there is too little to tell.

    OpenSSL takes one of 128 KiB, and keeps three times as much of it, of everybody who sends all of it but the end.
    """
    if len(hello) < _RECORD:
        return None
    record = int.from_bytes(hello[3:_RECORD], "big")
    if record < _MESSAGE:
        return True  # its size would come in records behind
    if record > _LONGEST_HELLO:
        return False  # no record: OpenSSL says so without the rest
    if len(hello) < _RECORD + _MESSAGE:
        return None
    kind, *size = hello[_RECORD : _RECORD + _MESSAGE]
    return kind == _CLIENT_HELLO and int.from_bytes(bytes(size), "big") > _LONGEST_HELLO
