"""What a store, or its provider, has of partitions, as a new owner reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from services.rpc.store_pb2 import Fence, RecoveredBatch

if TYPE_CHECKING:
    from services.common.clients.store import StoreClient
    from services.store.provider import Provider, StoredBatch


async def read_back(client: StoreClient, fence: Fence) -> tuple[RecoveredBatch, list[RecoveredBatch]]:
    """What may be sent again, and all batches, of one partition."""
    marks, *rest = [message async for message in client.recover([fence])]
    return marks, [batch for message in rest for batch in message.batches]


async def batches_of(provider: Provider, *partitions: int) -> AsyncIterator[StoredBatch]:
    """All batches of some partitions, by id."""
    found = await provider.numbers(partitions)
    async for batch in provider.batches(sorted(number for some in found.values() for number in some)):
        yield batch
