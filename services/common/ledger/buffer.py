"""Batches that wait for the bus, bounded by bytes. Pure."""

from __future__ import annotations

from collections import deque

from services.common.ledger.encoding import Sealed


class Buffer:
    """Oldest first. Without room the oldest batches are dropped: their missing row numbers show the gap."""

    def __init__(self, capacity: int) -> None:
        self._batches: deque[Sealed] = deque()
        self.capacity = capacity
        self._size = 0
        self.captured = 0
        """Bytes of captured messages in it."""
        self.given_up = 0
        """Rows that were dropped for lack of room."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def oldest(self) -> Sealed:
        """The batch to send next; it stays until `sent`."""
        return self._batches[0]

    def append(self, batch: Sealed) -> None:
        """Adds the newest batch; drops the oldest ones if there is no room."""
        self._batches.append(batch)
        self._size += len(batch.payload)
        self.captured += len(batch.payload) if batch.captures else 0
        while self._size > self.capacity and self._batches:
            self.given_up += self._pop().rows

    def give_up(self, batch: Sealed) -> None:
        """The batch will never arrive; it may have been dropped already."""
        if self._batches and self._batches[0] is batch:
            self.given_up += self._pop().rows

    def sent(self, batch: Sealed) -> None:
        """The batch has arrived; it may have been dropped while it was on its way."""
        if self._batches and self._batches[0] is batch:
            self._pop()

    def _pop(self) -> Sealed:
        batch = self._batches.popleft()
        self._size -= len(batch.payload)
        self.captured -= len(batch.payload) if batch.captures else 0
        return batch
