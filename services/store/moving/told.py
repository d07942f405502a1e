"""Whom to tell how far it is."""

from __future__ import annotations

from typing import Protocol


class Told(Protocol):
    """A person who waits, in one way or another."""

    def phase(self, what: str, total: int = 0) -> None:
        """Another part of the work begins, of `total` bytes; 0: nobody knows."""

    def step(self, size: int) -> None:
        """So many bytes more are done."""


class Silent:
    """Nobody waits."""

    def phase(self, what: str, total: int = 0) -> None:
        """Nobody is told."""

    def step(self, size: int) -> None:
        """Nobody is told."""
