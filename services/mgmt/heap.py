"""Memory that is given back to the system: reading files leaves many small things behind, whose room would be kept."""

from __future__ import annotations

import pyarrow as pa

from services.common.heap import trim


def give_back() -> None:
    """What Arrow and the C library keep for later; takes some milliseconds."""
    pa.default_memory_pool().release_unused()
    trim()
