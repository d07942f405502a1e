"""Bytes that wait to become whole frames. A frame that arrives in pieces is put together once, when it is complete."""

from __future__ import annotations

from services.gateway.protocols.dealings import Received


class Inbox:
    """Keeps what is not parsed yet, so that the cost of a stream does not depend on how it is split."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._needed = 0  # bytes before another look is worth it
        self.size = 0

    @property
    def missing(self) -> int:
        """Bytes that would complete what waits; 0 where nothing does, or nothing is missing."""
        return max(self._needed - self.size, 0) if self.size else 0

    def add(self, data: Received) -> Received | None:
        """Everything that waits, `data` last; None while more is needed (then it is kept)."""
        whole = self.size + len(data) >= self._needed
        if whole and not self.size:
            return data
        self._pieces.append(bytes(data))
        self.size += len(data)
        return self.take() if whole else None

    def take(self) -> bytes:
        """Everything that waits, whatever is needed."""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return data

    def keep(self, rest: bytes, needed: int) -> None:
        """`rest` waits until `needed` bytes are there."""
        self._needed = needed
        if rest:
            self._pieces.append(rest)
            self.size = len(rest)
