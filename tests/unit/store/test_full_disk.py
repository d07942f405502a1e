"""A disk that is full: no client is told a lie, and everything goes on when there is room again."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator

import pytest
import structlog

from services.common.clients.store import Journal, StoreClient
from services.rpc.store_pb2 import Fence
from tests.support.read_back import read_back
from tests.support.store_house import House, content, enqueue
from tests.support.store_process import StoreProcess


def large(number: int) -> bytes:
    return content(number, 100, size=4000).columns


async def test_frames_wait_for_room(house: House) -> None:
    """Frames that find the file full are written once there is room; one line says each."""
    await house.append(enqueue(10, 1))
    ((pages,),) = await house.provider._writer.rows("PRAGMA page_count")
    await house.provider._writer.rows(f"PRAGMA max_page_count = {pages + 4}")
    frame = enqueue(20, 100)
    frame.contents[0].columns = large(20)
    with structlog.testing.capture_logs() as logs:
        waiting = [house.append(frame), house.append(enqueue(30, 1))]
        await asyncio.sleep(0.7)
        waiting.append(house.append(enqueue(40, 1)))
        assert not any(done.done() for done in waiting)
        assert list(await house.alive()) == [10]
        await house.provider._writer.rows("PRAGMA max_page_count = 1000000")
        await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert [line["log_level"] for line in logs] == ["error", "info"]
    assert list(await house.alive()) == [10, 20, 30, 40]
    await house.restart()
    assert list(await house.alive()) == [10, 20, 30, 40]


@pytest.fixture
async def journal(process: StoreProcess) -> AsyncIterator[Journal]:
    journal = Journal(process.address, "test")
    await journal.start()
    yield journal
    await journal.stop()


async def test_a_log_that_cannot_grow(process: StoreProcess, journal: Journal) -> None:
    """When the system refuses to write, frames wait; the process lives, and they are written when it can."""
    await journal.append(enqueue(10, 1))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    size = (process.folder / "hopline.db-wal").stat().st_size
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (size + 100_000, hard))
    frame = enqueue(20, 100)
    frame.contents[0].columns = content(20, 100, size=40_000).columns  # more than is ahead in the log
    done = journal.append(frame)
    await asyncio.sleep(0.7)
    assert not done.done()
    assert process.process.returncode is None
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    await asyncio.wait_for(done, 5)
    client = StoreClient(process.address)
    _, recovered = await read_back(client, Fence(lease="partition/1", epoch=0))
    await client.close()
    assert [batch.entries.id for batch in recovered] == [10, 20]
    assert process.log.read_text().count("cannot write") == 1
