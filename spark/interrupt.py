"""Ctrl-C while Spark works: the command ends at once, and Java with it, for it reads a pipe of this process.

As an exception it would come up within py4j, which logs some, swallows some, and makes failures of Java of others.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Thread
from types import FrameType

from pyspark import SparkContext

INTERRUPTED = 130  # as shells say of what ends by Ctrl-C
_SHOW_CURSOR = "\x1b[?25h"  # progress hides it
_SECONDS_TO_HUSH = 2.0


def end_on_interrupt(context: SparkContext, status: int = INTERRUPTED) -> None:
    """From now on Ctrl-C ends this process, in a line and with `status`; pyspark's own handler goes."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        _hush(context)
        sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}interrupted\n")
        sys.stderr.flush()
        os._exit(status)

    signal.signal(signal.SIGINT, end)


def _hush(context: SparkContext) -> None:
    """Keeps Spark from telling of every task that ends because all of it does."""
    # A thread has a connection to Java of its own: that of this one waits for the answer to something else.
    thread = Thread(target=context.setLogLevel, args=("OFF",), daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_HUSH)
