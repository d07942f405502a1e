"""One scale of time for a message's way: how wide it is, and bars on it."""

from __future__ import annotations

from collections.abc import Iterable

_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Scale:
    """From the first of some times, in microseconds, to the last, in so many columns."""

    def __init__(self, times_us: Iterable[int], columns: int) -> None:
        every = list(times_us)
        self.begin = min(every, default=0)
        self._span = max(max(every, default=0) - self.begin, 1)
        self._columns = columns

    def bar(self, from_us: int, to_us: int) -> str:
        """From one time to another one, as wide as the scale; outside of it, at its end."""
        end = min(self._eighths(to_us), self._columns * 8 - 1)
        begin = max(min(self._eighths(from_us), end), 0)
        blank, width = begin // 8, end // 8 - begin // 8
        rest = _EIGHTHS[end % 8 if width else max(end % 8, 1)]
        return f"{' ' * blank}{'█' * width}{rest}".ljust(self._columns)

    def _eighths(self, time_us: int) -> int:
        return round((time_us - self.begin) * self._columns * 8 / self._span)
