"""A file system of its own that is soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PIECE = bytes(4096)


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Makes and mounts `folder`, in memory. Wants root, or sudo that does not ask; fails without."""
    folder.mkdir()
    options = f"size={mebibytes}m,mode=0700,uid={os.getuid()},gid={os.getgid()}"
    _as_root("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder)
    try:
        yield folder
    finally:
        _as_root("umount", "--lazy", folder)


def fill(folder: Path, leave: int = 0) -> Path:
    """A file that takes every byte that is left, but for so many."""
    path = folder / "fill"
    with path.open("wb", buffering=0) as file:
        try:
            while not leave or _free(folder) > leave:
                file.write(_PIECE)
        except OSError:
            pass
    return path


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _as_root(*command: str | Path) -> None:
    sudo = [] if os.getuid() == 0 else ["sudo", "--non-interactive"]
    subprocess.run([*sudo, *command], check=True)
