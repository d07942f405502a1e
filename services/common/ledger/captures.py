"""Messages with their bodies, on their way to the bus: in batches of their own, which leave most room to rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from services.common.ledger.buffer import Buffer
from services.common.ledger.encoding import Sealed
from services.rpc.ledger_pb2 import Captured, LedgerBatch

_BYTES_OF_BATCH = 64 << 10  # mgmt, which files them, fetches hundreds of batches at a time
LARGEST = 512 << 10
"""Bytes of one captured message, so that a batch stays below NATS's limit of 1 MiB."""
_SHARE = 8  # captured messages may take one byte in so many of the buffer


class Captures(Protocol):
    """Takes captured messages from gateways. `on` is False where there is no ledger."""

    on: bool

    def put(self, captured: Captured) -> bool:
        """Takes a captured message; False where there is no room for it."""


class NoCaptures:
    """Used where there is no ledger."""

    on = False

    def put(self, _captured: Captured) -> bool:
        """Takes nothing."""
        return False


OFF: Captures = NoCaptures()


class CaptureBatches:
    """Puts batches without rows into `buffer`; they carry the number of the next row that is in no batch yet."""

    on = True

    def __init__(self, header: LedgerBatch, buffer: Buffer, next_row: Callable[[], int]) -> None:
        self._header = header
        self._buffer = buffer
        self._next_row = next_row
        self._batch = LedgerBatch()
        self._size = 0
        self._number = 0

    def put(self, captured: Captured) -> bool:
        """As Captures says."""
        size = captured.ByteSize()
        if size > LARGEST or self._size + size + self._buffer.captured > self._buffer.capacity // _SHARE:
            return False
        self._batch.captured.append(captured)
        self._size += size
        if self._size >= _BYTES_OF_BATCH:
            self.seal()
        return True

    def seal(self) -> None:
        """Ends the open batch, if there is one."""
        if not self._size:
            return
        self._number += 1
        self._batch.MergeFrom(self._header)
        self._batch.first_row = self._next_row()
        self._buffer.append(Sealed(self._batch.first_row, 0, self._batch.SerializeToString(), self._number))
        self._batch, self._size = LedgerBatch(), 0
