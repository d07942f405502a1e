"""Memory that is given back to the system: the C library keeps the room of what is gone, for what may come.

A queue process whose backlog is consumed would keep the room of all of it. Giving it back holds up whoever wants
memory meanwhile, for a tenth of a second and more where it is much: a process does so when it is calm, or seldom.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from services.common.slack import Slack

LOOK_SECONDS: Final = 5.0
_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = resource.getpagesize()
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h


def trim() -> None:
    """What the C library keeps for later; takes some milliseconds for each ten megabytes."""
    _c_library("malloc_trim")(0)


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(_STATM.read_text().split()[1]) * _PAGE


def processor_seconds() -> float:
    """Of all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def return_large(least: int) -> None:
    """Whatever takes `least` bytes or more goes back to the system at once when it is free, from now on.

    Without this the C library keeps, after the first time, as much as the largest thing took that was freed: the
    16 MiB in which a password is verified, in each thread that has done that.
    """
    for parameter, value in ((_MMAP_THRESHOLD, least), (_TRIM_THRESHOLD, 2 * least)):
        _c_library("mallopt")(parameter, value)


def share_arena() -> None:
    """All threads take memory from one place, and leave no room of their own behind.

    For processes whose threads seldom take memory at the same time. To be called before they start.
    """
    _c_library("mallopt")(_ARENA_MAX, 1)


def small_pages() -> None:
    """Arrow takes memory in the system's small pages from now on; it must not be imported yet.

    It asks for pages of 2 MiB otherwise, each of which the kernel clears whole, however little of it is used before it
    is given back.
    """
    os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")


async def keep_small(kept: Callable[[], int], seconds: float = LOOK_SECONDS) -> None:
    """Gives memory back as long as the process runs; `kept` are bytes that it keeps for good reason."""
    slack, used = Slack(), processor_seconds()
    while True:
        await asyncio.sleep(seconds)
        before, used = used, processor_seconds()
        with suppress(OSError):  # with no file left none can be looked at: later again
            await _give_back(slack, kept, (used - before) / seconds)


async def _give_back(slack: Slack, kept: Callable[[], int], busy: float) -> None:
    if slack.look(resident() - kept(), busy):
        await asyncio.to_thread(trim)
        slack.given_back(resident() - kept())


@cache
def _c_library(name: str) -> Callable[..., object]:
    import ctypes  # noqa: PLC0415 - a short-lived command would load it for nothing

    try:
        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):  # not glibc
        return lambda *_: None
    return found
