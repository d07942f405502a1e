"""The store processes, from the lease table of the one that writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from operator import call

from services.common.containment import for_each
from services.rpc.store_pb2 import LeaseTable

ROLE = "store"
"""Role of all store processes; the lease of that name is the writer's. A store that runs alone does not list itself."""


class Stores:
    """Where the store is a database or a stream; `listeners` are called after each change."""

    def __init__(self) -> None:
        self.members: dict[str, str] = {}  # member → the address of its health check
        self.writer = ""
        self.listeners: list[Callable[[], None]] = []

    async def follow(self, tables: AsyncIterator[LeaseTable]) -> None:
        """Applies a watch of their leases; ends with it."""
        async for table in tables:
            self.apply(table)
            for_each("hearing of the store processes", self.listeners, call)

    def apply(self, table: LeaseTable) -> None:
        """Takes over a whole lease table."""
        self.members = {member.member: member.address for member in table.members}
        self.writer = next((lease.member for lease in table.leases if lease.name == ROLE), "")

    def does(self) -> dict[str, str]:
        """What each store process does, by member."""
        return {member: "writes" if member == self.writer else "stands by" for member in sorted(self.members)}
