"""How many may be connected over HTTP, in all and of one address.

A connection is its client's turn until a request is there whole, again while its answer is to be read, and when that
is done. When there are as many connections as may be, the one whose client has taken longest makes room: those that
come to the point take milliseconds, and who keeps connections half open, or idle, or does not read, takes no place from
them. Where all wait for the server, the next one is refused; but whose address has no connection gets one of the
address that has most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from services.common.authentication.attempts import place_of
from services.common.few_lines import FewLines

log = structlog.get_logger()

REFUSED = "refused"
CLOSED = "closed"
_USUALLY = 1000
_OWN_SHARE = 2  # one part in so many of the files is for connections; look-ups and links want others
_SECONDS = 60.0  # for one line of a kind
_IN_ALL = "raise HOPLINE_HTTP_MAX_CONNECTIONS, or see who opens them (ss -tn)"
_OF_ONE = "raise HOPLINE_HTTP_MAX_CONNECTIONS_EACH where many come from there, a proxy's clients perhaps"


class Peer(Protocol):
    """One connection."""

    def cut_off(self) -> None:
        """Closes it at once."""


@dataclass(slots=True)
class _Lot:
    """Of connections: `waiting` are those whose client's turn it is, who has taken longest first."""

    limit: int
    do: str
    count: int = 0
    waiting: dict[Peer, None] = field(default_factory=dict)


class Doors:
    """Of one server."""

    def __init__(self, wanted: int, each: int, files: int) -> None:
        """`wanted` connections in all (0: as usual), half of `files` at most; `each` of one address (0: as many)."""
        limit = min(wanted or _USUALLY, max(files // _OWN_SHARE, 1))
        if limit < wanted:
            log.warning("fewer connections over HTTP than wanted: too few files", limit=limit, do="raise ulimit -n")
        self._all = _Lot(limit, _IN_ALL)
        self._each = min(each or limit, limit)
        self._lots: dict[str, _Lot] = {}  # by address
        self._places: dict[Peer, str] = {}
        self._few = FewLines(1, _SECONDS)
        self.ended: Counter[str] = Counter()
        """How many were too many, by what became of them."""

    @property
    def limit(self) -> int:
        """Of connections in all."""
        return self._all.limit

    @property
    def inside(self) -> int:
        """Who is connected."""
        return self._all.count

    def come(self, peer: Peer, address: str) -> bool:
        """A socket was accepted: whether there is room, which another one may have to make."""
        place = place_of(address)
        lot = self._lots.get(place) or _Lot(self._each, _OF_ONE if self._each < self.limit else _IN_ALL)
        if not (self._has_room(lot, address) and self._has_room(self._all, address)):
            return False
        self._lots[place] = lot
        self._places[peer] = place
        for each in (lot, self._all):
            each.count += 1
            each.waiting[peer] = None
        return True

    def client_s_turn(self, peer: Peer) -> None:
        """To ask, or to go on asking."""
        for each in self._lots_of(peer):
            each.waiting.setdefault(peer, None)

    def server_s_turn(self, peer: Peer) -> None:
        """A request is there, whole."""
        for each in self._lots_of(peer):
            each.waiting.pop(peer, None)

    def leave(self, peer: Peer) -> None:
        """It is gone."""
        for each in self._lots_of(peer):
            each.count -= 1
            each.waiting.pop(peer, None)
        place = self._places.pop(peer, None)
        if place is not None and not self._lots[place].count:
            del self._lots[place]

    def _lots_of(self, peer: Peer) -> tuple[_Lot, ...]:
        """None where it was refused, or is gone."""
        place = self._places.get(peer)
        return () if place is None else (self._lots[place], self._all)

    def _has_room(self, lot: _Lot, address: str) -> bool:
        if lot.count < lot.limit:
            return True
        longest = next(iter(lot.waiting), None) or self._of_the_most(address)
        self.ended[CLOSED if longest else REFUSED] += 1
        if longest is None:
            self._tell("connections over HTTP are refused: as many as may be wait for answers", lot, address)
            return False
        self._tell("too many connections over HTTP: those that ask for nothing, or have most, are closed", lot, address)
        self.leave(longest)
        longest.cut_off()
        return True

    def _of_the_most(self, address: str) -> Peer | None:
        """For an address that has none: of several that another one has, the one that is connected for longest."""
        most = max(self._lots, key=lambda place: self._lots[place].count, default=None)
        if most is None or place_of(address) in self._lots or self._lots[most].count == 1:
            return None
        return next(peer for peer, place in self._places.items() if place == most)

    def _tell(self, what: str, lot: _Lot, address: str) -> None:
        self._few.say(log.warning, what, limit=lot.limit, the_next_from=address, do=lot.do)
