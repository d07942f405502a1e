"""kill -9 under load: everything acknowledged is on disk, and nothing counts twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from services.common.clients.store import Journal, StoreClient
from services.rpc.store_pb2 import Dequeue, Fence, KeepAliveRequest
from services.store.providers.sqlite import SQLiteProvider
from tests.support.programs import until
from tests.support.read_back import batches_of, read_back
from tests.support.store_house import dequeue, enqueue
from tests.support.store_process import StoreProcess

SIZE = 50


@dataclass
class Model:
    """What a writer asked for, and what it was told is done."""

    asked: dict[int, set[int]] = field(default_factory=dict)  # batch → dequeued
    done: dict[int, set[int]] = field(default_factory=dict)
    stopped: bool = False


async def load(journal: Journal, model: Model, fence: Fence, base: int) -> None:
    """Enqueues batches and empties most of them, a few frames in flight."""
    order = random.Random(base)
    window = asyncio.Semaphore(8)
    tasks = []

    async def batch(number: int) -> None:
        model.asked[number] = set()
        await journal.append(enqueue(number, SIZE, fences=[fence]))
        model.done[number] = set()
        for _ in range(order.randrange(4)):
            left = [index for index in range(SIZE) if index not in model.asked[number]]
            some = order.sample(left, min(len(left), 20))
            model.asked[number].update(some)
            await journal.append(dequeue(number, *some, fences=[fence]))
            model.done[number].update(some)
        window.release()

    while not model.stopped:
        await window.acquire()
        tasks.append(asyncio.create_task(batch(base + len(tasks) * SIZE)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)


async def on_disk(process: StoreProcess) -> dict[int, set[int]]:
    """Batch → dequeued indexes, as the dead store left them."""
    provider = SQLiteProvider(process.folder)
    await provider.open()
    found = {}
    async for batch in batches_of(provider, 1):
        assert batch.columns
        indexes = list(Dequeue.FromString(b"".join(batch.dequeues)).indexes)
        assert len(indexes) == len(set(indexes)), "a dequeue counted twice"
        found[batch.entry.id] = set(indexes)
    await provider.close()
    return found


def check(found: dict[int, set[int]], model: Model) -> None:
    for number, done in model.done.items():
        if len(model.asked[number]) < SIZE:
            assert number in found, f"an acknowledged batch is lost: {number}"
        if number in found:
            assert done <= found[number] <= model.asked[number]
    assert found.keys() <= model.asked.keys()


@pytest.fixture
async def journals(process: StoreProcess) -> AsyncIterator[list[Journal]]:
    journals = [Journal(process.address, f"writer {number}") for number in range(2)]
    for journal in journals:
        await journal.start()
    yield journals
    for journal in journals:
        await journal.stop()


async def test_killed_again_and_again(process: StoreProcess, journals: list[Journal]) -> None:
    """After every kill what was acknowledged is on disk; at the end all is as asked, exactly."""
    client = StoreClient(process.address)
    await client.keep_alive(KeepAliveRequest(member="m", role="queue", acquire=["partition/1"]), timeout=5)
    fence = Fence(lease="partition/1", epoch=1)
    model = Model()
    tasks = [
        asyncio.create_task(load(journal, model, fence, (number + 1) << 39)) for number, journal in enumerate(journals)
    ]
    for _ in range(5):
        before = len(model.done)
        await until(lambda before=before: len(model.done) > before)
        await asyncio.sleep(random.random() * 0.4)
        await process.kill()
        check(await on_disk(process), model)
        await process.start()
    model.stopped = True
    await asyncio.gather(*tasks)
    _, recovered = await read_back(client, fence)
    await client.close()
    assert len(model.done) > 100
    left = {number: gone for number, gone in model.asked.items() if len(gone) < SIZE}
    assert {batch.entries.id: set(batch.dequeued) for batch in recovered} == left
    assert all(len(batch.dequeued) == len(set(batch.dequeued)) for batch in recovered)


async def test_a_clean_stop(process: StoreProcess, journals: list[Journal]) -> None:
    """SIGTERM ends with code 0 and leaves one file, without a log beside it."""
    await journals[0].append(enqueue(10, 3))
    assert await process.stop() == 0
    assert not (process.folder / "hopline.db-wal").exists()
    assert await on_disk(process) == {10: set()}
