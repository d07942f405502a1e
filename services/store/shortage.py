"""Whether there is too little room, and for how long publishers wait once there is enough again.

What they send when they go on takes up at once what folding in the log gave back: without a pause they were stopped and
let go on several times a second. So there has to be enough for some seconds, for longer each time it was short again
soon; with plenty of room for the first seconds only.
"""

from __future__ import annotations

ENOUGH = 1.25  # times what has to be free
_PLENTY = 2
_MOST = 60.0
_SOON = 60.0


class Shortage:
    """Begins where less is free than has to be. Time comes in with each look."""

    first: float = 5.0
    """Seconds with enough room, after which it is over."""

    def __init__(self) -> None:
        self.now = False
        """Whether there is one, as of the last look."""
        self._pause = self.first
        self._enough_since: float | None = None
        self._over: float | None = None

    def look(self, free: int, kept: int, now: float) -> bool:
        """Whether there is one with so many bytes free, of which so many have to be."""
        if not self.now:
            if free < kept:
                self._begin(now)
        elif free < kept * ENOUGH:
            self._enough_since = None
        else:
            self._wait(now, self.first if free >= kept * _PLENTY else self._pause)
        return self.now

    def _begin(self, now: float) -> None:
        soon = self._over is not None and now - self._over < _SOON
        self._pause = min(self._pause * 2, _MOST) if soon else self.first
        self.now, self._enough_since = True, None

    def _wait(self, now: float, pause: float) -> None:
        if self._enough_since is None:
            self._enough_since = now
        if now - self._enough_since >= pause:
            self.now, self._over = False, now
