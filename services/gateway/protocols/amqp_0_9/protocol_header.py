"""The eight bytes that open a connection (section 4.2.2), and what else peers open one with."""

from __future__ import annotations

from collections.abc import Sequence

from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.openings import refused


def chosen(versions: Sequence[Version], opening: bytes) -> Version | None:
    """Whose header `opening` begins with; None while it is not complete."""
    return next((version for version in versions if opening.startswith(version.header)), None)


def refusal(versions: Sequence[Version], opening: bytes) -> str:
    """Why a connection that begins with `opening` cannot go on, or "" while it may be the header of one of them."""
    if any(version.header.startswith(opening[:8]) for version in versions):
        return ""
    return refused(", ".join(version.name for version in versions), opening)
