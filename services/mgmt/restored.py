"""What the stack does not know since its store was restored, as the store's record of that says it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from services.common.containment import contained
from services.common.restored import Restored, read
from services.rpc.store_pb2 import Records


class RestoredNote:
    """`last` is the last restore, None when there never was one; `text` is a sentence for people, or "" then."""

    def __init__(self) -> None:
        self.last: Restored | None = None

    @property
    def text(self) -> str:
        return str(self.last) if self.last else ""

    async def follow(self, messages: AsyncIterator[Records]) -> None:
        """Applies a watch of the records of kind `store`; ends with the watch."""
        async for message in messages:
            try:
                restored = read(message.records)
            except ValueError as fault:
                contained("reading that the store was restored", fault)
                continue
            if restored or message.snapshot:
                self.last = restored
