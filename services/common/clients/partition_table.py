"""The owner of each partition, from the store's lease table; for every service that sends to queue processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import call

from services.common.containment import for_each
from services.common.partition import partition_in
from services.rpc import store_pb2 as pb

ROLE = "queue"


@dataclass(frozen=True, slots=True)
class Owner:
    """A queue process as the owner of a partition in one epoch."""

    member: str
    address: str
    epoch: int
    # As of this table: messages a second, in and out, and how many were ready.
    rate: float = field(default=0.0, compare=False)
    messages: int = field(default=0, compare=False)


@dataclass(slots=True)
class PartitionTable:
    """Follows the leases; `listeners` are called after every change, once `owners` and `members` are up to date."""

    owners: dict[int, Owner] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)  # member → address, of the processes believed alive
    unwritable: str = ""  # why the store cannot write for now
    unchangeable: str = ""  # why it cannot write configuration, where that is apart
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def ended(self, partitions: Iterable[int], epochs: Iterable[int]) -> set[int]:
        """Partitions that an owner says it has lost in these epochs, or in one that it does not name.

        Without partitions known to be in a later epoch: when that began, all processes heard of the end of the former.
        """
        lost = zip_longest(partitions, epochs, fillvalue=0)
        return {number for number, epoch in lost if not self._is_past(number, epoch)}

    def _is_past(self, partition: int, epoch: int) -> bool:
        owner = self.owners.get(partition)
        return owner is not None and 0 < epoch < owner.epoch

    async def follow(self, tables: AsyncIterator[pb.LeaseTable]) -> None:
        """Applies each table of a watch; ends with the watch."""
        async for table in tables:
            self.apply(table)

    def apply(self, table: pb.LeaseTable) -> None:
        """Takes over a whole lease table and tells the listeners."""
        # A member that is joining has no address yet.
        self.members = {member.member: member.address for member in table.members if member.address}
        self.owners = {
            partition: Owner(lease.member, lease.address, lease.epoch, lease.load.rate, lease.load.messages)
            for lease in table.leases
            if (partition := partition_in(lease.name)) is not None
        }
        self.unwritable, self.unchangeable = table.unwritable, table.unchangeable
        for_each("hearing of the partitions' owners", self.listeners, call)
