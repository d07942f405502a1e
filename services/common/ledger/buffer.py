"""Batches that wait for the bus, bounded by bytes. Pure."""

from __future__ import annotations

from collections import deque

from services.common.ledger.encoding import Sealed


class Buffer:
    """Oldest first. When there is no room the oldest go: their row numbers never arrive, which tells the gap."""

    def __init__(self, capacity: int) -> None:
        self._batches: deque[Sealed] = deque()
        self.capacity = capacity
        self._size = 0
        self.captured = 0
        """Bytes of it that are captured messages."""
        self.given_up = 0
        """Rows that went so."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def oldest(self) -> Sealed:
        """The one to be sent next; stays until `sent`."""
        return self._batches[0]

    def append(self, batch: Sealed) -> None:
        """The newest."""
        self._batches.append(batch)
        self._size += len(batch.payload)
        self.captured += len(batch.payload) if batch.captures else 0
        while self._size > self.capacity and self._batches:
            self.given_up += self._pop().rows

    def sent(self, batch: Sealed) -> None:
        """It arrived; it may have been given up while it was on its way."""
        if self._batches and self._batches[0] is batch:
            self._pop()

    def _pop(self) -> Sealed:
        batch = self._batches.popleft()
        self._size -= len(batch.payload)
        self.captured -= len(batch.payload) if batch.captures else 0
        return batch
