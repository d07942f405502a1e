"""Room on a disk: how much there is, how much is kept for messages, and whether other writers must stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_MOST = 64 << 20
_SHARE = 10  # a tenth of a small disk
_GIVES_WAY = 2  # times the reserve: other writers stop before messages have to


class Room(NamedTuple):
    """Bytes of a disk: what this process may still write, and its size."""

    free: int
    total: int


def room(folder: Path | str) -> Room | None:
    """The room on the disk of `folder`; None where that cannot be found out."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def reserve(configured: int, total: int) -> int:
    """Bytes that messages leave free; `configured` as HOPLINE_DISK_RESERVE, `total` the size of the disk."""
    return configured or min(_MOST, total // _SHARE)


def must_give_way(configured: int, found: Room | None) -> bool:
    """Whether everything but messages (the ledger, spans) must no longer be written."""
    return found is not None and found.free < _GIVES_WAY * reserve(configured, found.total)


def mebibytes(size: int) -> str:
    """A size in words for operators."""
    if 0 < size < 1 << 10:
        return f"{size} bytes"
    return f"{size / (1 << 20):.0f} MiB" if size >= 1 << 20 else f"{size // 1024} KiB"
