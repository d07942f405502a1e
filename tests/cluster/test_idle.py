"""A stack without clients costs next to nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.stack import wait_until

if TYPE_CHECKING:
    from tests.support.stack import Stack

MEBIBYTE = 1 << 20
MOST_MEMORY = 250 * MEBIBYTE
# About 125 on any machine, where CPU time depends on what else runs there: 2 % of a core are 0.12 ms for each.
MOST_WAKES = 200
MEASURED_SECONDS = 10.0
SETTLED_SECONDS = 100.0  # for what is still to be done after the start, on a slow machine


def _wakes(stack: Stack) -> dict[Path, int]:
    """How often each thread of all processes but NATS has been woken since it began, gRPC's own among them."""
    nats = stack.pid("nats")
    threads = [thread for pid in stack.pids() if pid != nats for thread in Path(f"/proc/{pid}/task").iterdir()]
    return {thread: _switches(thread) for thread in threads}


def _switches(thread: Path) -> int:
    try:
        lines = (thread / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it ended since it was listed
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def test_an_idle_stack_sleeps(stack: Stack) -> None:
    """Whole, with default settings: processes come to wake seldom, and have less than 250 MiB in all."""
    wait_until(lambda: _sleeps(stack), SETTLED_SECONDS, f"stack that wakes less than {MOST_WAKES} times a second")
    assert stack.memory() < MOST_MEMORY


def _sleeps(stack: Stack) -> bool:
    began, before = time.monotonic(), _wakes(stack)
    time.sleep(MEASURED_SECONDS)
    woken = sum(max(0, count - before.get(thread, 0)) for thread, count in _wakes(stack).items())
    return woken / (time.monotonic() - began) < MOST_WAKES
