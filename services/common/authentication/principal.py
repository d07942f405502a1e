"""Who has signed in, as its provider knows it: what access is decided by."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    again: bool = field(default=False, compare=False)
    """Whether its provider can be asked later if that is still so, which it does not tell by itself."""


NOBODY = Principal("", "")
"""Before anybody has signed in."""
