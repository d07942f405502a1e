"""Work in small pieces with longer rests between them, so that the processes that carry messages find a core free."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from services.common.clock import Clock, monotonic

_RESTS = 4.0  # times as long as the piece before: of a core, a fifth is used
_PIECE = 0.0002  # seconds of work that are worth a rest; less is counted with what follows

Rest = Callable[[], None]
"""Called between two pieces of work, each of which should take less than a millisecond."""


def no_rest() -> None:
    """For work that nothing else waits for."""


class Pace:
    """Of one thread, which calls `rest`; another one says when that may take time."""

    def __init__(
        self,
        worked: Clock = time.thread_time,
        clock: Clock = monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """`worked` gives the seconds for which the calling thread has had a core."""
        self._worked = worked
        self._clock = clock
        self._hurried = threading.Event()
        self._sleep = sleep or self._hurried.wait
        self._until = 0.0
        self._begun = 0.0  # by `worked`

    def allow(self, seconds: float) -> None:
        """Work that begins now may rest for so long, counted from now; then it goes on without rests."""
        self._until = self._clock() + seconds

    def hurry(self) -> None:
        """Ends a rest that is under way; there will be no others."""
        self._hurried.set()

    def rest(self) -> None:
        """Lets others work for a while, if there is time for it."""
        piece = self._worked() - self._begun
        if piece < _PIECE:
            return
        left = self._until - self._clock()
        if left > 0 and not self._hurried.is_set():
            self._sleep(min(piece * _RESTS, left))
        self._begun = self._worked()
