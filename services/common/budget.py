"""Bytes that many may hold, and no more of them all together."""

from __future__ import annotations


class Budget:
    """`most` bytes; whoever takes some gives them back, once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    def take(self, size: int) -> bool:
        """Takes so many bytes, or none where that is more than is left."""
        if self.used + size > self.most:
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """So many of those that were taken are free again."""
        self.used -= size
