"""Snapshots of a watch, told when all of one is there: a stream may break off in the middle, and the next begins anew.

Who follows collects a snapshot's messages until the last, and would take what came of the former one for part of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

from services.rpc.store_pb2 import Records


async def whole_snapshots(stream: AsyncIterable[Records]) -> AsyncIterator[Records]:
    """The messages of one stream, without a snapshot that it does not end."""
    snapshot: list[Records] = []
    async for message in stream:
        if not message.snapshot:
            yield message
            continue
        snapshot.append(message)
        if message.last:
            for part in snapshot:
                yield part
                await asyncio.sleep(0)  # to take one over takes its time
            snapshot = []
