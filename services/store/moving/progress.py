"""Reports the progress of a move."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Shows progress to a person who waits."""

    def phase(self, what: str, total: int = 0) -> None:
        """Another part of the work begins, of `total` bytes; 0: unknown."""

    def step(self, size: int) -> None:
        """So many bytes more are done."""


class Silent:
    """Shows no progress."""

    def phase(self, what: str, total: int = 0) -> None:
        """Does nothing."""

    def step(self, size: int) -> None:
        """Does nothing."""
