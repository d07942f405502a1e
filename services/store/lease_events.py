"""Changes of leases' holders, for the bus."""

from __future__ import annotations

from services.common.bus.facts import LeaseAcquired, LeaseLost, LeaseReleased
from services.common.partition import partition_in
from services.store.provider import LeaseRow


def acquired(row: LeaseRow) -> LeaseAcquired:
    """`row.member` has the lease, and that is on disk."""
    return LeaseAcquired(
        lease=row.name,
        partition=partition_in(row.name),
        role=row.role,
        member=row.member,
        epoch=row.epoch,
        address=row.address,
    )


def released(row: LeaseRow) -> LeaseReleased:
    """`row.member` has released the lease."""
    return LeaseReleased(
        lease=row.name, partition=partition_in(row.name), role=row.role, member=row.member, epoch=row.epoch
    )


def lost(row: LeaseRow) -> LeaseLost:
    """`row.member` was silent for too long."""
    return LeaseLost(
        lease=row.name, partition=partition_in(row.name), role=row.role, member=row.member, epoch=row.epoch
    )
