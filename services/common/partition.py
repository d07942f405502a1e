"""The partition that a slot of a queue belongs to. The hash is part of what is on disk: it may never change."""

from __future__ import annotations

import zlib
from typing import Final

from services.common.topology.slots import SlotName

TAKEN_OVER: Final = "hopline.queue.Partitions"
"""To be asked in a health check of a queue process: whether it serves all partitions that it owns."""


def partition_of(name: SlotName, partitions: int) -> int:
    """0..partitions-1, its queue's slots are in partitions that follow one another."""
    return (zlib.crc32(f"{name.virtual_host}\0{name.queue}".encode()) + name.slot) % partitions


def lease_name(partition: int) -> str:
    """The name under which the store leases `partition`."""
    return f"partition/{partition}"


def partition_in(lease: str) -> int | None:
    """The partition that a lease is about, or None when it is about a role."""
    kind, _, number = lease.partition("/")
    return int(number) if kind == "partition" else None
