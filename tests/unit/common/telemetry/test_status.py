from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from services.common.config import Settings
from services.common.errors import Unavailable
from services.common.telemetry import status
from services.common.telemetry.context import new_root
from services.common.telemetry.conventions import Kind
from services.common.telemetry.span import Span
from services.common.telemetry.status import Status, report
from services.common.telemetry.tracer import Tracer
from services.rpc.store_pb2 import Record


class Records:
    """The store, as far as it is needed; `away` makes it fail."""

    def __init__(self) -> None:
        self.told: list[Status] = []
        self.deleted: list[str] = []
        self.away = False

    async def put(self, puts: Sequence[Record], deletes: Sequence[Record]) -> int:
        if self.away:
            raise Unavailable("the store is away")
        self.told += [Status.model_validate_json(record.value) for record in puts]
        self.deleted += [record.key for record in deletes]
        assert all(record.transient for record in puts)
        return 1


@pytest.fixture
def tracer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracer]:
    monkeypatch.setattr(status, "_EVERY", 0.01)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    made = Tracer.from_environment(Settings(data=tmp_path), "queue", "queue-1")
    yield made
    made.stop()


async def until(condition: object) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_reports(tracer: Tracer) -> None:
    """A process is told of at once and after each change, sleeps while there is none, and is deleted when it stops."""
    records = Records()
    task = asyncio.create_task(report(tracer, "queue", "queue-1", records.put))
    await until(lambda: records.told)
    await asyncio.sleep(0.1)
    assert [one.ended for one in records.told] == [0]
    tracer.end(Span("s", Kind.INTERNAL, new_root()))
    await until(lambda: records.told[-1].exported == 1)
    count = len(records.told)
    await asyncio.sleep(0.1)
    assert len(records.told) == count
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert records.deleted == ["queue-1"]


async def test_store_away(tracer: Tracer) -> None:
    """What could not be told is told when the store is back."""
    records = Records()
    records.away = True
    task = asyncio.create_task(report(tracer, "queue", "queue-1", records.put))
    await asyncio.sleep(0.05)
    records.away = False
    await until(lambda: records.told)
    records.away = True
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
