"""Where the lines of a log are written: those that tell of a fault at once, others a moment later, many at a time.

Who reads the log of a gateway whose clients come and go is not woken for each of them. A line that comes alone is
written at once. Of a process that is killed, the lines of a busy last moment are missing, in which nothing was wrong.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final, Protocol

from services.common.clock import monotonic

_LATER: Final = 0.02  # seconds
_MOST: Final = 100  # lines that wait


class _File(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


class LogStream:
    """A logger as structlog wraps it, and a stream as handlers of libraries have it. Threads log too."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._lock = threading.RLock()  # while it is held, garbage may be collected, which may log
        self._lines: list[str] = []
        self._timed: asyncio.AbstractEventLoop | None = None  # the loop that writes them soon, unless it ends before
        self._written = -_LATER  # when it last did, by the monotonic clock

    def __call__(self, *_arguments: object) -> LogStream:
        """As structlog makes a logger: there is one."""
        return self

    def soon(self, line: str) -> None:
        """Adds a line; it is written at once where no event loop runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.now(line)
            return
        with self._lock:
            self._lines.append(line)
            timed, many = self._timed is loop, len(self._lines) >= _MOST
            alone = not timed and monotonic() - self._written >= _LATER
            self._timed = loop
        if many or alone:
            self.write_out()
        elif not timed:
            loop.call_later(_LATER, self.write_out)

    def now(self, line: str) -> None:
        """Writes a line, behind those that wait."""
        with self._lock:
            self._lines.append(line)
        self.write_out()

    debug = info = soon
    msg = warning = warn = error = exception = critical = fatal = failure = log = now

    def write_out(self) -> None:
        """Writes what waits."""
        with self._lock:
            lines, self._lines, self._timed, self._written = self._lines, [], None, monotonic()
            if lines:
                self._file.write("\n".join([*lines, ""]))
                self._file.flush()

    # -------------------------------------------------------------- as a stream

    def write(self, text: str) -> None:
        """Behind the lines that wait."""
        self.write_out()
        self._file.write(text)

    def flush(self) -> None:
        """As of a file."""
        self.write_out()
        self._file.flush()
