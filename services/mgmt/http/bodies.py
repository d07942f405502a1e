"""What bodies of requests take that are not answered yet: one budget for all clients, and one for large bodies.

Of each body a mebibyte counts: only clients that have signed in are read beyond that. When there is too much, bodies
that do not come to their end are closed until there is not: of the address that has most, there of the user that has
most, the one that began first; where all are whole, the newest one is. What goes beyond a mebibyte has a budget of the
same size: where it is used up, the one that became large last is closed, of the address and user that have most of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from services.common.crowd import Whose, of_the_most
from services.common.few_lines import FewLines
from services.mgmt.http.doors import Peer

log = structlog.get_logger()

EACH: Final = 1 << 20
"""Bytes that count of one."""
_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "see who sends them (ss -tn); those that are whole are answered"


class Bodies:
    """Of one server."""

    def __init__(self, limit: int, whose: Callable[[Peer], Whose]) -> None:
        """`limit` in bytes."""
        self.limit = limit
        self._whose = whose
        self.total = 0
        self.beyond = 0  # what is more than EACH, of all
        self._sizes: dict[Peer, int] = {}
        self._large: dict[Peer, None] = {}  # longer than EACH; the latest to become so is the last
        self._begun: dict[Peer, None] = {}  # not whole; who began first comes first
        self._few = FewLines(1, _SECONDS)

    def note(self, peer: Peer, more: int, *, whole: bool) -> None:
        """So much more of a request's body has come."""
        self._add(peer, more)
        if whole:
            self._begun.pop(peer, None)
        else:
            self._begun.setdefault(peer, None)
        while self.total > self.limit:
            counted = {each: min(size, EACH) for each, size in self._sizes.items()}
            self._close(of_the_most(self._begun or (peer,), counted, self._whose))
        while self.beyond > self.limit:
            counted = {each: _beyond(self._sizes[each]) for each in self._large}
            self._close(of_the_most(reversed(self._large), counted, self._whose))

    def _add(self, peer: Peer, more: int) -> None:
        before = self._sizes.get(peer, 0)
        size = self._sizes[peer] = before + more
        self.total += min(size, EACH) - min(before, EACH)
        self.beyond += _beyond(size) - _beyond(before)
        if size > EACH:
            self._large.setdefault(peer, None)

    def forget(self, peer: Peer) -> None:
        """It is answered, or gone."""
        self._begun.pop(peer, None)
        self._large.pop(peer, None)
        size = self._sizes.pop(peer, 0)
        self.total -= min(size, EACH)
        self.beyond -= _beyond(size)

    def _close(self, peer: Peer) -> None:
        what = "too much in bodies of requests over HTTP: those that do not end, or became large last, are closed"
        self._few.say(log.warning, what, bytes=self.total + self.beyond, requests=len(self._sizes), do=_DO)
        self.forget(peer)
        peer.cut_off()


def _beyond(size: int) -> int:
    return max(0, size - EACH)
