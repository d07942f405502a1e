"""Who has signed in, as its provider knows it: what access is decided by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """Of one connection, or one request over HTTP."""

    name: str
    provider: str
    """The name of the one that vouches for it: of a composite, the one that it asked last."""
    groups: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    expires: float | None = None
    """Seconds of the Unix epoch, after which it counts no longer."""
    loopback_only: bool = False


NOBODY = Principal("", "")
"""Before anybody has signed in."""
