"""A history that never gets on: one turn of a process that goes in circles, in which virtual time stands still too."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 60
"""Of this process's own time; a history takes one or two."""


class StandsStill(KeyboardInterrupt):
    """Says where. Nothing that contains failures contains an interrupt."""


@contextmanager
def interrupted(seconds: float = SECONDS) -> Iterator[None]:
    """Raises StandsStill in what takes longer. By the time of the process: a busy machine makes nothing fail."""
    before = signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    where = traceback.extract_stack(frame)[-6:]
    raise StandsStill(" < ".join(f"{each.name} ({each.filename}:{each.lineno})" for each in reversed(where)))
