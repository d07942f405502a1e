"""What connections take that do nothing: there may be fifteen thousand of them."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path

import services
from tests.support.broker_house import BrokerHouse

_CLIENTS = 100
_MOST = 10 << 10  # bytes, and those of sockets besides
_OURS = tracemalloc.Filter(True, str(Path(services.__file__).parent / "*"))


async def test_memory_of_an_idle_connection(broker: BrokerHouse) -> None:
    """With a channel and a heartbeat, it takes a few KiB."""
    await broker.connect()  # the first one loads what all others use
    gc.collect()
    tracemalloc.start()
    try:
        before = _traced()
        for _ in range(_CLIENTS):
            await broker.connect(heartbeat=60)
        await asyncio.sleep(0.2)
        gc.collect()
        each = (_traced() - before) / _CLIENTS
    finally:
        tracemalloc.stop()
    assert 1 << 10 < each < _MOST


def _traced() -> int:
    snapshot = tracemalloc.take_snapshot().filter_traces([_OURS])
    return sum(each.size for each in snapshot.statistics("filename"))
