"""Ports for the servers of tests: no two get the same one, and no outgoing connection takes one meanwhile.

A port that the system picks is one of those that it also gives to outgoing connections: by the time the server of the
test listens, a connection may have taken it. So these lie below that range, and a block of them belongs to one process
of tests, by a lock on a file, which ends with the process.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOOPBACK = "127.0.0.1"
_FIRST, _END = 10_000, 32_000  # the system's own begin at 32,768
_BLOCK = 100
_FOLDER = Path(tempfile.gettempdir()) / "hopline-test-ports"


def free_port() -> int:
    """A free loopback port, given to one caller only."""
    return next(_ports)


def free_ports(number: int) -> list[int]:
    """So many of them."""
    return [free_port() for _ in range(number)]


def _free() -> Iterator[int]:
    for first in range(_FIRST, _END, _BLOCK):
        if _taken(first):
            yield from filter(_unused, range(first, first + _BLOCK))
    raise OSError("no port is left for tests: what holds them?")


def _taken(first: int) -> bool:
    """Whether the block is this process's from now on, until it ends; the file stays open for that."""
    _FOLDER.mkdir(exist_ok=True)
    lock = os.open(_FOLDER / str(first), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    return True


def _unused(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True


_ports = _free()
