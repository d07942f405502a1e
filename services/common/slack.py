"""When a process has so much memory that it no longer needs that giving it back is worth the pause. Pure."""

from __future__ import annotations

_WORTH = 64 << 20  # bytes that are spare
_CALM = 0.25  # of a core: a process that uses less is not held up by much
_FIRST = 12  # looks at which that much was spare, before a busy process gives it back
_MOST = 360  # looks, where it needs the memory again each time
_SOONER = 6  # times, when it is calm


class Slack:
    """Told of `spare` at each look: the bytes in memory that nothing which the process keeps accounts for.

    What of them cannot be given back is taken for the process itself: it is what was left the last time.
    """

    def __init__(self) -> None:
        self._own: int | None = None
        self._seen = 0
        self._needed = _FIRST

    def look(self, spare: int, share: float) -> bool:
        """Whether to give back now; `share` is what the process has used of a core since the last look."""
        self._own = spare if self._own is None else min(self._own, spare)
        if spare - self._own < _WORTH:
            self._seen = 0
            self._needed = max(self._needed - 1, _FIRST)
            return False
        self._seen += 1
        return self._seen >= (self._needed // _SOONER if share < _CALM else self._needed)

    def given_back(self, spare: int) -> None:
        """So much is spare yet. Who needs the memory again soon is asked less often."""
        self._own = spare
        self._seen = 0
        self._needed = min(2 * self._needed, _MOST)
