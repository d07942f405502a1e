"""Limits log lines that clients can cause as often as they like: some of each kind, then a count of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_MOST = 50
_SECONDS = 10.0


class FewLines:
    """For one event loop. The event's text and `apart_by` make the kind: lines of one kind do not hide another's."""

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS) -> None:
        """`most` lines of each kind in `seconds`."""
        self._most = most
        self._seconds = seconds
        self._counts: dict[tuple[str, object], int] = {}

    def say(self, log: Callable[..., object], event: str, *, apart_by: object = "", **about: object) -> None:
        """Calls `log` with the line, or only counts it."""
        key = event, apart_by
        count = self._counts.get(key, 0)
        if not count:
            asyncio.get_running_loop().call_later(self._seconds, self._begin_again, log, event, apart_by)
        self._counts[key] = count + 1
        if count < self._most:
            log(event, **about)

    def _begin_again(self, log: Callable[..., object], event: str, apart_by: object) -> None:
        left_out = self._counts.pop((event, apart_by)) - self._most
        if left_out > 0:
            of = {"of": apart_by} if apart_by else {}
            log("more lines like one above were left out", like=event, count=left_out, seconds=self._seconds, **of)
