"""Ties a child to its supervisor: it cannot outlive a supervisor that was killed with -9.

As a program it executes the one that its arguments name: the request to the kernel outlives exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "HOPLINE_SUPERVISOR"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Has the kernel kill this process with the supervisor that started it, if any; exits if that is gone already.

    The child asks the kernel itself: code between fork and exec would run beside gRPC's threads in the supervisor.
    """
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is not None:
        die_with(int(parent))


def die_with(parent: int) -> None:
    """As `die_with_parent`, with the process `parent`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The supervisor may have died before the kernel was asked.
    if os.getppid() != parent:
        raise SystemExit(1)


if __name__ == "__main__":
    die_with_parent()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - the supervisor's own command, and no shell
