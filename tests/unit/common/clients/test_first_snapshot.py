from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from services.common.clients.first_snapshot import FirstSnapshots
from services.rpc.store_pb2 import Records


async def _watch(batches: list[Records], more: asyncio.Event) -> AsyncIterator[Records]:
    for batch in batches:
        yield batch
    await more.wait()


async def test_known() -> None:
    """Once the last part of the first snapshot of each watch has been applied, and not before."""
    first, more = FirstSnapshots(), asyncio.Event()
    parts = [Records(snapshot=True), Records(snapshot=True, last=True)]
    one, other = first.of(_watch(parts, more)), first.of(_watch(parts, more))
    known = asyncio.create_task(first.known())

    async def applied(watch: AsyncIterator[Records], count: int) -> asyncio.Task[Records]:
        for _ in range(count):
            await anext(watch)
        following = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        return following

    followers = [await applied(one, 2)]
    assert (await anext(other)).snapshot
    await asyncio.sleep(0)
    assert not known.done()
    followers.append(await applied(other, 1))
    await known
    for each in followers:
        each.cancel()
