"""The partition that a queue belongs to. The hash is part of what is on disk: it may never change."""

from __future__ import annotations

import zlib


def partition_of(virtual_host: str, queue: str, partitions: int) -> int:
    """0..partitions-1, from the virtual host and the queue's name."""
    return zlib.crc32(f"{virtual_host}\0{queue}".encode()) % partitions


def lease_name(partition: int) -> str:
    """The name under which the store leases `partition`."""
    return f"partition/{partition}"


def partition_in(lease: str) -> int | None:
    """The partition that a lease is about, or None when it is about a role."""
    kind, _, number = lease.partition("/")
    return int(number) if kind == "partition" else None
