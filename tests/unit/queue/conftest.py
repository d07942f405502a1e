"""A house with a queue process in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from services.common.ledger.encoding import Sealed
from services.common.ledger.ledger import Ledger
from services.common.ledger.row_recorder import RowRecorder
from services.rpc.ledger_pb2 import LedgerBatch
from tests.support.queue_house import House


@pytest.fixture
def lease_ttl_ms() -> int:
    """Longer than a machine stands still: in most tests leases run out by hand, or not at all."""
    return 10_000


@pytest.fixture
async def house(tmp_path: Path, lease_ttl_ms: int) -> AsyncIterator[House]:
    """Store (in memory), router and one queue process."""
    built = House(tmp_path, lease_ttl_ms=lease_ttl_ms)
    await built.start()
    yield built
    await built.stop()


@pytest.fixture
async def recorded(house: House, monkeypatch: pytest.MonkeyPatch) -> Callable[[], LedgerBatch]:
    """What a queue process that begins now tells the record, all of it in one batch."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1", sealed.append)
    await house.queues.pop("queue-1").stop()
    monkeypatch.setattr(Ledger, "start", lambda its: setattr(its, "recorder", recorder))
    await house.start_queue("queue-1")

    def told() -> LedgerBatch:
        recorder.seal()
        (batch,) = sealed
        return LedgerBatch.FromString(batch.payload)

    return told
