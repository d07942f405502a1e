"""What the stack does not know since its store was restored, as the store's record of that says it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from services.common.containment import contained
from services.common.restored import read
from services.rpc.store_pb2 import Records


class RestoredNote:
    """`text` is a sentence for people; "" when the store never was restored."""

    def __init__(self) -> None:
        self.text = ""

    async def follow(self, messages: AsyncIterator[Records]) -> None:
        """Applies a watch of the records of kind `store`; ends with the watch."""
        async for message in messages:
            try:
                restored = read(message.records)
            except ValueError as fault:
                contained("reading that the store was restored", fault)
                continue
            if restored or message.snapshot:
                self.text = str(restored) if restored else ""
