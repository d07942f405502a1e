"""The receiving half of flow control: how much may still come, on a stream or on all (RFC 9113 section 5.2)."""

from __future__ import annotations


class ReceiveWindow:
    """Opens again as soon as half of it is used up, unless it is held."""

    __slots__ = ("_held", "_left", "_size")

    def __init__(self, size: int) -> None:
        """`size` in octets."""
        self._size = self._left = size
        self._held = False

    def take(self, size: int) -> bool:
        """So many octets have come; False where they are more than the peer was allowed."""
        self._left -= size
        return self._left >= 0

    def has_plenty(self, size: int) -> bool:
        """Whether so many octets are allowed, and the window need not be opened again behind them."""
        return self._left - size >= self._size // 2

    def hold(self, *, held: bool) -> None:
        """While it is held the peer may send what the window has left, and no more."""
        self._held = held

    def increment(self) -> int:
        """By how much the peer is to be told that the window grows; 0: not now."""
        if self._held or self._left >= self._size // 2:
            return 0
        more, self._left = self._size - self._left, self._size
        return more
