"""Connections to a port of the stack whose callers have not said its secret: how many, how long, what they may hold.

A process of the stack says it with its first call, in milliseconds. Who has not may be anybody who can reach the port,
or a health check, which needs no secret and is as short. So one that holds a connection and says nothing takes a place
from nobody: when there are too many, or they hold too much, one of the address that has most makes room.
"""

from __future__ import annotations

from typing import Final, Protocol

import structlog

from services.common.authentication.attempts import place_of
from services.common.crowd import Waiting, Whose, of_the_most
from services.common.few_lines import FewLines

log = structlog.get_logger()

SECONDS: Final = 10.0
"""Until the secret must have been said."""
CALLS: Final = 4
"""That may be open on one of these connections."""
OCTETS: Final = 32 << 20
"""That all of them together may have sent and not finished, with the room for what comes."""
_MOST = 256
_SHARE = 16  # one in so many of the files that the process may have open
_LINES_SECONDS = 60.0
_MANY = "too many connections without the stack's secret: of who has most, the longest is closed for the next"
_MUCH = "too much is unfinished on connections without the stack's secret: one of who has most is closed"
_DO = "let only processes of the stack reach this port"
_LATE = "a connection is closed: no call on it has said the stack's secret"


def most_of(files: int) -> int:
    """How many there may be in a process that may have so many files open."""
    return max(min(_MOST, files // _SHARE), 1)


class Newcomer(Protocol):
    """One of the connections."""

    def cut_off(self) -> None:
        """Closes it at once."""


class Newcomers:
    """Of one server."""

    def __init__(self, most: int, octets: int = OCTETS) -> None:
        """`most` connections, which hold `octets` together."""
        self._most = most
        self._octets = octets
        self._total = 0
        self._sizes: dict[Newcomer, int] = {}
        self._whose: dict[Newcomer, Whose] = {}
        self._waiting: Waiting[Newcomer] = Waiting()
        self._few = FewLines(1, _LINES_SECONDS)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._whose)

    def come(self, peer: Newcomer, address: str) -> None:
        """A connection was accepted; another one may have to make room for it."""
        self._whose[peer] = whose = Whose(place_of(address))
        self._waiting.add(peer, whose)
        if self.count > self._most and (longest := self._waiting.longest()):
            self._few.say(log.warning, _MANY, limit=self._most, the_next_from=address, do=_DO)
            self._end(longest)

    def hold(self, peer: Newcomer, size: int) -> None:
        """So many octets are taken for what it has sent; without effect for one that is none, or no longer."""
        if peer not in self._whose:
            return
        self._total += size - self._sizes.get(peer, 0)
        self._sizes[peer] = size
        while self._total > self._octets:
            most = of_the_most(self._sizes, self._sizes, self._whose.__getitem__)
            self._few.say(log.warning, _MUCH, limit=self._octets, place=self._whose[most].place, do=_DO)
            self._end(most)

    def late(self, peer: Newcomer) -> None:
        """Its time is over, and its user closes it."""
        self._few.say(log.info, _LATE, seconds=SECONDS, place=self._whose[peer].place)
        self.leave(peer)

    def leave(self, peer: Newcomer) -> None:
        """It has said the secret, or is gone; without effect for one that is none."""
        if whose := self._whose.pop(peer, None):
            self._waiting.remove(peer, whose)
            self._total -= self._sizes.pop(peer, 0)

    def _end(self, peer: Newcomer) -> None:
        self.leave(peer)
        peer.cut_off()
