"""Memory that is given back to the system: reading files leaves many small things behind, whose room would be kept."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache

import pyarrow as pa


def give_back() -> None:
    """What Arrow and the C library keep for later; takes some milliseconds."""
    pa.default_memory_pool().release_unused()
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    try:
        return ctypes.CDLL(ctypes.util.find_library("c")).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return lambda _: None
