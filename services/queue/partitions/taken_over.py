"""Whether a process serves the partitions that it owns: with a lease alone messages for them still wait."""

from __future__ import annotations

from services.common.clients.partition_table import PartitionTable
from services.queue.partitions.partition import PartitionState
from services.queue.partitions.registry import Registry


def has_taken_over(registry: Registry, table: PartitionTable, member: str) -> bool:
    """Of all that the table says are the member's: others may hear of a lease before it does."""
    held = registry.partitions
    own = {number: owner.epoch for number, owner in table.owners.items() if owner.member == member}
    heard = all(number in held and held[number].epoch >= epoch for number, epoch in own.items())
    return heard and all(partition.state is not PartitionState.RECOVERING for partition in held.values())
