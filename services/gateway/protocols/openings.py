"""What else than a protocol's header peers begin with: who reads the log is told what to look for."""

from __future__ import annotations

_MEANINGS = (
    (b"\x16\x03", "a TLS hello on a port without TLS"),
    (b"GET ", "an HTTP request on the AMQP port"),
    (b"HEAD ", "an HTTP request on the AMQP port"),
    (b"POST ", "an HTTP request on the AMQP port"),
    (b"PUT ", "an HTTP request on the AMQP port"),
    (b"PRI * ", "an HTTP/2 request on the AMQP port"),
    (b"AMQP", "another version of AMQP"),
    (b"\x10", "an MQTT packet on the AMQP port"),
)


def refused(names: str, opening: bytes) -> str:
    """Why a connection that begins like this cannot go on in a protocol called `names`."""
    begun = f"({opening[:8]!r})"
    meaning = next((meaning for prefix, meaning in _MEANINGS if opening.startswith(prefix)), "")
    return f"not {names}: {meaning} {begun}" if meaning else f"not {names}: the peer began with {opening[:8]!r}"


def begins(headers: tuple[bytes, ...], opening: bytes) -> bool | None:
    """Whether one of the headers is what a peer began with; None while that cannot be known."""
    if opening.startswith(headers):
        return True
    return None if any(header.startswith(opening) for header in headers) else False
