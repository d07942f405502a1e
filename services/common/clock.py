"""The two clocks, as arguments for whoever is pure: `Clock` in, numbers out."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]

monotonic: Clock = time.monotonic


def until_next(seconds: float) -> float:
    """How long until a multiple of `seconds` by the machine's clock: idle processes wake up together, not in turns.

    Gives between 0.1 and 1.1 times `seconds`, as timers may come a moment early.
    """
    left = seconds - monotonic() % seconds
    return left if left > seconds / 10 else left + seconds


def epoch_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000
