"""Whether the store can tell who is gone: when everybody is silent at once, it is the store that nobody reached."""

from __future__ import annotations

# Of the time to live. Members renew at half of it: whoever was heard this lately would not have let the others pass.
_LATELY = 0.4
_NEVER_SO_LONG = 0.6


class Hearing:
    """Of members whose leases live for `ttl` seconds; `now` is when it begins to listen (monotonic seconds)."""

    def __init__(self, ttl: float, now: float) -> None:
        self._ttl = ttl
        self._last = now

    def heard(self, now: float) -> bool:
        """A member speaks; gives whether nobody had been heard for longer than two members would be silent."""
        silence, self._last = now - self._last, now
        return silence > self._ttl * _NEVER_SO_LONG

    def hears(self, now: float) -> bool:
        """Whether it is certain that members would be heard."""
        return now - self._last <= self._ttl * _LATELY
