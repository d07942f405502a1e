"""What answers take that their clients do not read: one budget for all of them.

When there is too much, the one that has been unread for longest is closed, of the address and user that have most,
until there is not. The last one stays, however large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from services.common.crowd import Whose, of_the_most
from services.common.few_lines import FewLines
from services.mgmt.http.doors import Peer

log = structlog.get_logger()

_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "see who asks and does not read (ss -tn)"


class Unread:
    """Of one server."""

    def __init__(self, limit: int, whose: Callable[[Peer], Whose]) -> None:
        """`limit` in bytes."""
        self.limit = limit
        self._whose = whose
        self.total = 0
        self._sizes: dict[Peer, int] = {}  # whose is unread for longest comes first
        self._few = FewLines(1, _SECONDS)

    def note(self, peer: Peer, size: int) -> None:
        """So many bytes of its answer are left."""
        self.total += size - self._sizes.get(peer, 0)
        self._sizes[peer] = size
        while self.total > self.limit and len(self._sizes) > 1:
            self._close(of_the_most(self._sizes, self._sizes, self._whose))

    def forget(self, peer: Peer) -> None:
        """It is read, or its client is gone."""
        self.total -= self._sizes.pop(peer, 0)

    def _close(self, peer: Peer) -> None:
        what = "too much in answers over HTTP that are not read: those of who has most are closed"
        self._few.say(log.warning, what, bytes=self.total, answers=len(self._sizes), do=_DO)
        self.forget(peer)
        peer.cut_off()
