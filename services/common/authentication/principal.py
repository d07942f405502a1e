"""The user that has signed in, as its provider knows it: access is decided by it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Principal:
    """The user of one connection, or of one request over HTTP."""

    name: str
    provider: str
    """The provider that vouches for it: behind a composite, the one that accepted it."""
    groups: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    expires: float | None = None
    """Seconds of the Unix epoch, after which the sign-in no longer counts."""
    loopback_only: bool = False
    again: bool = field(default=False, compare=False)
    """Whether the provider must be asked again later, as it does not announce changes by itself."""


NOBODY = Principal("", "")
"""Before the client has signed in."""
