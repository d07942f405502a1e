"""Runs a command and says what it took: time, and the memory of it and all processes that it started."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

_SECONDS_BETWEEN_LOOKS = 0.2
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Took:
    """What a command took."""

    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a command came to no good end, in a line."""

    reason: str


def run(command: Sequence[str]) -> Took | Failed:
    """Runs a command to its end."""
    started = time.monotonic()
    with TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        most = 0
        while process.poll() is None:
            most = max(most, sum(_resident(one) for one in _family(process.pid)))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if process.returncode:
            return Failed(_last_line(errors) or f"ended with {process.returncode}")
    return Took(time.monotonic() - started, most / 1e6)


def _last_line(errors: IO[bytes]) -> str:
    """What a traceback comes to, or what was said instead of one."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    said = [line for line in lines if line.strip()]
    return said[-1].strip() if said else ""


def _family(process: int) -> Iterator[int]:
    yield process
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [child for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from _family(int(child))


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
