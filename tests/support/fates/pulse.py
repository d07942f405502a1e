"""Whether the machine itself stood still: what waits for a processor or a disk that others have is nobody's anomaly."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERY = 0.05  # seconds
TOO_LATE = 0.1  # seconds; an edge's wait is odd from ten milliseconds on, of a twentieth of its messages
_SYNCS = 10  # of so many beats, one is of the disk


class Stall(NamedTuple):
    """`at`, when it was over, in seconds since the Unix epoch; it took `seconds`."""

    at: float
    seconds: float


class Pulse:
    """Beats of a thread that does nothing else, in a process that is as important as those that are looked at."""

    def __init__(self, file: Path) -> None:
        """`file` is on the disk that is looked at."""
        self.stalls: list[Stall] = []
        self._file = file
        self._ended = threading.Event()

    def stood_still(self, begin: float, end: float) -> list[Stall]:
        """Between these times."""
        return [stall for stall in self.stalls if stall.at > begin and stall.at - stall.seconds < end]

    @contextmanager
    def taken(self) -> Iterator[Pulse]:
        """For so long."""
        thread = threading.Thread(target=self._beat, daemon=True)
        thread.start()
        yield self
        self._ended.set()
        thread.join()

    def _beat(self) -> None:
        with self._file.open("wb") as file:
            number = 0
            while not self._ended.is_set():
                began, number = time.monotonic(), number + 1
                time.sleep(EVERY)
                if number % _SYNCS == 0:
                    os.pwrite(file.fileno(), b"beat", 0)
                    os.fdatasync(file.fileno())
                if (late := time.monotonic() - began - EVERY) > TOO_LATE:
                    self.stalls.append(Stall(time.time(), late))
