"""Which queue processes answer, of those that the record names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from services.common.clients.partition_table import PartitionTable
from services.common.grpc_channel import is_serving

_DEADLINE = 0.5  # seconds


class Owners:
    """By the members of `table`; `check` says whether something serves at an address, within seconds."""

    def __init__(self, table: PartitionTable, check: Callable[[str, float], Awaitable[bool]] = is_serving) -> None:
        self._table = table
        self._check = check

    async def silent(self, instances: Collection[str]) -> Collection[str]:
        """Those that are no members, or do not answer, or whose place another one has taken."""
        asked = sorted(instances)
        answers = await asyncio.gather(*map(self._answers, asked))
        return {instance for instance, answered in zip(asked, answers, strict=True) if not answered}

    async def _answers(self, instance: str) -> bool:
        address = self._table.members.get(instance, "")
        # One that was started anew listens where the former did, which is a member until its time is over.
        alone = list(self._table.members.values()).count(address) == 1
        return bool(address) and alone and await self._check(address, _DEADLINE)
