"""Counts of queues are asked for while there are requests for them, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.clients.partition_table import PartitionTable
from services.mgmt.tree import recent
from services.mgmt.tree.counts import Collector, Counts, Row
from services.rpc import counts_pb2 as pb


class Asked(Collector):
    """Every member says that its queue has as many messages as it was asked before."""

    def __init__(self) -> None:
        super().__init__(PartitionTable(members={"m": "unix:m"}))
        self.times = 0

    async def _of(self, address: str, into: Counts) -> None:
        into.take(pb.Counted(queue_ids=[1], ready=[self.times], unsettled=[0], bytes=[0]))
        self.times += 1


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    collector = Asked()
    yield collector
    await collector.stop()


async def test_not_before_somebody_asks(asked: Asked) -> None:
    """No process is asked; then each once, for any number of requests at the same time."""
    await asyncio.sleep(0)
    assert asked.times == 0
    told = await asyncio.gather(*(asked.fresh() for _ in range(5)))
    assert [each.rows for each in told] == [{1: Row(0, 0, 0)}] * 5
    assert asked.times == 1


async def test_not_for_ever(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on in the background for a while after the last question, and ends by itself."""
    monkeypatch.setattr(recent, "_EVERY", 0.0)
    monkeypatch.setattr(recent, "_WANTED", 0.05)
    await asked.fresh()
    running = asked._running
    assert running
    await running
    assert asked.times > 1


async def test_never_older_than_said(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that finds counts too old waits for new ones."""
    await asked.fresh()
    assert (await asked.fresh()).rows[1].ready == 0
    monkeypatch.setattr(recent, "OLDEST", 0.0)
    assert (await asked.fresh()).rows[1].ready == 1


async def test_one_that_does_not_answer(tmp_path: Path) -> None:
    """A queue process that is gone leaves the others' counts as they are."""
    collector = Collector(PartitionTable(members={"gone": f"unix:{tmp_path}/nobody.sock"}))
    assert (await collector.fresh()).rows == {}
    await collector.stop()
