"""When a connection last did something, by the loop's clock in seconds."""

from __future__ import annotations


class Activity:
    """`used`: it asked for something, or was sent messages; beats are no use.

    Beside the connection: Python shares the names of thirty attributes among all objects of a class, and no more.
    """

    __slots__ = ("read", "used", "wrote")

    def __init__(self) -> None:
        self.read = self.wrote = self.used = 0.0

    def begin(self, now: float) -> None:
        """It is new."""
        self.read = self.wrote = self.used = now
