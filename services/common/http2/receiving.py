"""The receiving half of flow control: how much may still come, on a stream or on all (RFC 9113 section 5.2)."""

from __future__ import annotations


class ReceiveWindow:
    """Opens again as soon as half of it is used up, unless it is held."""

    __slots__ = ("_held", "_size", "half", "left")

    def __init__(self, size: int) -> None:
        """`size` in octets."""
        self._size = self.left = size
        self.half = size // 2
        """With less left than this it opens again."""
        self._held = False

    def take(self, size: int) -> bool:
        """So many octets have come; False where they are more than the peer was allowed."""
        self.left -= size
        return self.left >= 0

    def hold(self, *, held: bool) -> None:
        """While it is held the peer may send what the window has left, and no more."""
        self._held = held

    def increment(self) -> int:
        """By how much the peer is to be told that the window grows; 0: not now."""
        if self._held or self.left >= self.half:
            return 0
        more, self.left = self._size - self.left, self._size
        return more
