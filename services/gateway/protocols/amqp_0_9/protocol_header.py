"""The eight bytes that open a connection (section 4.2.2), and what else peers open one with."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.version import Version

_OPENINGS = (
    (b"\x16\x03", "a TLS hello on a port without TLS"),
    (b"GET ", "an HTTP request on the AMQP port"),
    (b"HEAD ", "an HTTP request on the AMQP port"),
    (b"POST ", "an HTTP request on the AMQP port"),
    (b"PUT ", "an HTTP request on the AMQP port"),
    (b"PRI * ", "an HTTP/2 request on the AMQP port"),
    (b"AMQP", "another version of AMQP"),
    (b"\x10", "an MQTT packet on the AMQP port"),
)


def refusal(version: Version, opening: bytes) -> str:
    """Why a connection that begins with `opening` cannot go on, or "" while it may still be `version`'s header."""
    if version.header.startswith(opening[:8]):
        return ""
    for prefix, meaning in _OPENINGS:
        if opening.startswith(prefix):
            return f"not {version.name}: {meaning} ({opening[:8]!r})"
    return f"not {version.name}: the peer began with {opening[:8]!r}"
