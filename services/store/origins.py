"""Origins: numbers that are never given twice, for the upper bits of uids."""

from __future__ import annotations

import asyncio

from services.common.errors import ResourceError
from services.common.uid import SEQUENCE_BITS
from services.store.committer import Committer
from services.store.draft import Draft

# Uids have 63 bits.
LAST_ORIGIN = (1 << (63 - SEQUENCE_BITS)) - 1


class Origins:
    """Gives one origin after the other."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._last = 0

    def restore(self, last: int) -> None:
        """The last origin that was given."""
        self._last = last

    async def allocate(self) -> int:
        """A new origin, once its allocation is on disk. Raises ResourceError when there are none left."""
        if self._last >= LAST_ORIGIN:
            raise ResourceError(f"all {LAST_ORIGIN} origins were given")
        self._last += 1
        allocation = Allocation(self._last)
        self._committer.submit(allocation)
        return await asyncio.shield(allocation.origin)


class Allocation:
    """An origin on its way to the disk."""

    def __init__(self, origin: int) -> None:
        self.origin: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._value = origin

    def prepare(self, draft: Draft) -> None:
        draft.changes.origin = self._value

    def written(self) -> None:
        self.origin.set_result(self._value)
