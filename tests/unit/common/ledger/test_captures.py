"""Captured messages on their way to the bus."""

from __future__ import annotations

from services.common.ledger.buffer import Buffer
from services.common.ledger.captures import LARGEST, OFF, CaptureBatches
from services.common.ledger.encoding import Sealed
from services.rpc.ledger_pb2 import Captured, LedgerBatch

_KIB = 1024


def _told(buffer: Buffer) -> list[LedgerBatch]:
    batches = []
    while buffer:
        batches.append(LedgerBatch.FromString(buffer.oldest.payload))
        buffer.sent(buffer.oldest)
    return batches


def test_batches_without_rows() -> None:
    """They name their instance and the row that comes next, and are no rows themselves; each has a name of its own."""
    buffer = Buffer(32 << 20)
    captures = CaptureBatches(LedgerBatch(service="gateway", instance="gateway-1"), buffer, lambda: 7)
    captures.seal()
    assert not buffer
    names = []
    for uid in (1, 2):
        assert captures.put(Captured(uid=uid, body=b"x"))
        captures.seal()
        names.append(buffer.oldest.name)
        [batch] = _told(buffer)
        assert (batch.service, batch.instance, batch.first_row, len(batch.stages)) == ("gateway", "gateway-1", 7, 0)
        assert [each.uid for each in batch.captured] == [uid]
    assert len({*names, Sealed(7, 1, b"").name}) == 3


def test_they_stay_below_the_limit_of_nats() -> None:
    """However many and large they are, no batch is too much for NATS; one that never fits is not taken."""
    buffer = Buffer(256 << 20)
    captures = CaptureBatches(LedgerBatch(), buffer, lambda: 1)
    assert all(captures.put(Captured(uid=uid, body=bytes(300 * _KIB))) for uid in range(10))
    assert not captures.put(Captured(uid=99, body=bytes(LARGEST)))
    captures.seal()
    batches = _told(buffer)
    assert [each.uid for batch in batches for each in batch.captured] == list(range(10))
    assert max(batch.ByteSize() for batch in batches) < 1 << 20


def test_rows_have_the_room() -> None:
    """While the bus is away they take an eighth of the buffer and no more, and have room again when it is back."""
    buffer = Buffer(1 << 20)
    captures = CaptureBatches(LedgerBatch(), buffer, lambda: 1)
    taken = [captures.put(Captured(uid=uid, body=bytes(4 * _KIB))) for uid in range(100)]
    assert 25 <= sum(taken) <= 32
    captures.seal()
    buffer.append(Sealed(1, 5, LedgerBatch(words=["x" * _KIB]).SerializeToString()))
    assert buffer.captured <= 128 * _KIB
    assert not captures.put(Captured(uid=100, body=bytes(8 * _KIB)))
    _told(buffer)
    assert buffer.captured == 0
    assert captures.put(Captured(uid=100, body=bytes(8 * _KIB)))


def test_nothing_is_taken_where_there_is_no_ledger() -> None:
    """It says so."""
    assert not OFF.on
    assert not OFF.put(Captured(uid=1))
