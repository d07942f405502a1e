"""What the generator's processes tell each other: a few 64-bit numbers in shared memory, each with one writer."""

from __future__ import annotations

import enum
import mmap


class Counter(enum.IntEnum):
    """Which number stands where."""

    STOP = 0
    """Set by the coordinator: publish no more."""
    PUBLISHED = 1
    CONFIRMED = 2
    CONSUMED = 3
    PRODUCER_READY = 4
    CONSUMER_READY = 5
    FINISHED = 6
    """Set by the producer when all it published is confirmed: PUBLISHED is final."""
    OPENED = 7
    """Connections, by one process."""


Counters = memoryview
"""Indexed by Counter. An aligned 64-bit store is atomic, and every number has one writer: no lock."""


def shared() -> Counters:
    """Counters at zero that processes forked from here on share."""
    return memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
