"""How much memory a process may use: what the machine has, or less where a control group says so, version 1 or 2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_FILES = ("memory.max", "memory.high", "memory.limit_in_bytes")
_MOUNTS = {"": ("", "unified"), "memory": ("memory",)}  # controller → folders below /sys/fs/cgroup

_QUEUE_SHARE = 0.4
_QUEUE_MOST = 1 << 30
# Bytes that a stack takes beside messages: each of its processes, shared pages divided, and all of them when they work.
_EACH, _WORKING = 24 << 20, 192 << 20

_alike = 1  # processes as this one on the machine, with it
_told = 0  # bytes that are for this process, and those alike; 0: nobody has told


def count_with(told: int) -> None:
    """From now on no more than so many bytes are there, whatever the machine has; 0: as many as it has."""
    global _told  # noqa: PLW0603 - as below
    _told = told


def beside_its_own(memory: int, processes: int) -> int:
    """Bytes for messages, and what is done to them, where all processes of a stack share `memory`."""
    return max(memory - _WORKING - processes * _EACH, memory // 4, 1)


def share(processes: int) -> None:
    """From now on the memory of this process is what is there, parted among so many that do the same."""
    global _alike  # noqa: PLW0603 - it is the process that shares, not a part of it
    _alike = processes


def available(root: Path = Path("/")) -> int:
    """Bytes of memory that are for this process; `root` is the folder of /proc and /sys."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([_told or machine, machine, *_limits(root)]) // _alike


def for_messages(available: int, processes: int) -> int:
    """Bytes of messages that each of `processes` queue processes may keep before it holds publishers back.

    The rest is for the process itself, for frames on their way (a message needs eight times its size while it comes in
    and goes to disk), and for what comes until publishers stop. More than a gibibyte must be set by the operator.
    """
    return min(_QUEUE_MOST, int(available * _QUEUE_SHARE / processes))


def largest_message(available: int) -> int:
    """The largest message that a process with so much memory survives, beside what it holds."""
    return available // 24


def _limits(root: Path) -> Iterator[int]:
    """Limits of the process's own groups and their ancestors. In a container the root shows these."""
    for base, group in _groups(root):
        for folder in (group, *group.parents):
            for name in _FILES:
                limit = _number(base / folder.relative_to("/") / name)
                if limit:
                    yield limit


def _groups(root: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", maxsplit=2)
        for controller in controllers.split(","):
            for mount in _MOUNTS.get(controller, ()):
                yield root / "sys/fs/cgroup" / mount, PurePosixPath(path)


def _number(file: Path) -> int:
    """The number in a file; 0 for none."""
    try:
        text = file.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() else 0
