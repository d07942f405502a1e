"""The store processes, as the one of them that writes says it in its lease table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from operator import call

from services.common.containment import for_each
from services.rpc.store_pb2 import LeaseTable

ROLE = "store"
"""Of all of them; the lease of that name is the writer's. Where there can be but one, it says nothing of itself."""


class Stores:
    """Where the store is a database or a stream; `listeners` are called after each change."""

    def __init__(self) -> None:
        self.members: dict[str, str] = {}  # with the addresses where they are asked how they are
        self.writer = ""
        self.listeners: list[Callable[[], None]] = []

    async def follow(self, tables: AsyncIterator[LeaseTable]) -> None:
        """Applies a watch of their leases; ends with it."""
        async for table in tables:
            self.apply(table)
            for_each("hearing of the store processes", self.listeners, call)

    def apply(self, table: LeaseTable) -> None:
        """What one says."""
        self.members = {member.member: member.address for member in table.members}
        self.writer = next((lease.member for lease in table.leases if lease.name == ROLE), "")

    def does(self) -> dict[str, str]:
        """What each of them does."""
        return {member: "writes" if member == self.writer else "stands by" for member in sorted(self.members)}
