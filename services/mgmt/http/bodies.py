"""What bodies of requests take that are not answered yet: one budget for all, whoever sends them.

Of each a mebibyte counts: what comes beyond is of those alone who have signed in. When there is too much, those that
began first and do not come to their end are closed until there is not; where all are whole, the newest one is.
"""

from __future__ import annotations

from typing import Final

import structlog

from services.common.few_lines import FewLines
from services.mgmt.http.doors import Peer

log = structlog.get_logger()

EACH: Final = 1 << 20
"""Bytes that count of one."""
_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "see who sends them (ss -tn); those that are whole are answered"


class Bodies:
    """Of one server."""

    def __init__(self, limit: int) -> None:
        """In bytes."""
        self.limit = limit
        self.total = 0
        self._sizes: dict[Peer, int] = {}
        self._begun: dict[Peer, None] = {}  # not whole; who began first comes first
        self._few = FewLines(1, _SECONDS)

    def note(self, peer: Peer, more: int, *, whole: bool) -> None:
        """So much more of a request's body has come."""
        before = self._sizes.get(peer, 0)
        size = min(before + more, EACH)
        self._sizes[peer] = size
        self.total += size - before
        if whole:
            self._begun.pop(peer, None)
        else:
            self._begun.setdefault(peer, None)
        while self.total > self.limit:
            self._close(next(iter(self._begun), peer))

    def forget(self, peer: Peer) -> None:
        """It is answered, or gone."""
        self._begun.pop(peer, None)
        self.total -= self._sizes.pop(peer, 0)

    def _close(self, peer: Peer) -> None:
        what = "too much in bodies of requests over HTTP: those that began first and do not end are closed"
        self._few.say(log.warning, what, bytes=self.total, requests=len(self._sizes), do=_DO)
        self.forget(peer)
        peer.cut_off()
