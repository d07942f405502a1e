"""The eight bytes that open a connection (section 4.2.2), and what else peers open one with."""

from __future__ import annotations

from collections.abc import Sequence

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


def chosen(versions: Sequence[Version], opening: bytes) -> Version | None:
    """Whose header `opening` begins with; None while it is not complete."""
    return next((version for version in versions if opening.startswith(version.header)), None)


def refusal(versions: Sequence[Version], opening: bytes) -> str:
    """Why a connection that begins with `opening` cannot go on, or "" while it may be the header of one of them."""
    if any(version.header.startswith(opening[:8]) for version in versions):
        return ""
    names = ", ".join(version.name for version in versions)
    for prefix, meaning in _OPENINGS:
        if opening.startswith(prefix):
            return f"not {names}: {meaning} ({opening[:8]!r})"
    return f"not {names}: the peer began with {opening[:8]!r}"
