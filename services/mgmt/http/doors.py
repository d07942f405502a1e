"""How many may be connected over HTTP, in all and of one address.

A connection is its client's turn until a request is there whole, again while its answer is to be read, and when that
is done. When there are as many connections as may be, one whose client has the turn makes room: of the address that has
most, there of the user that has most, the one that has taken longest. Those that come to the point take milliseconds,
and who keeps connections half open, or idle, or does not read, takes no place from them; nor does a crowd from one
address from who sends slowly from another. Where all wait for the server, the next one is refused; but whose address
has no connection gets one of the address that has most.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

import structlog

from services.common.authentication.attempts import place_of
from services.common.crowd import Ranks, Waiting, Whose
from services.common.few_lines import FewLines

log = structlog.get_logger()

REFUSED = "refused"
CLOSED = "closed"
SIGNED_IN: Final = "hopline.signed_in"
"""In the scope of a request: called with the user that has signed in."""
_NOBODY: Final = Whose("")
_USUALLY = 1000
_OWN_SHARE = 2  # one part in so many of the files is for connections; look-ups and links want others
_SECONDS = 60.0  # for one line of a kind
_IN_ALL = "raise HOPLINE_HTTP_MAX_CONNECTIONS, or see who opens them (ss -tn)"
_OF_ONE = "raise HOPLINE_HTTP_MAX_CONNECTIONS_EACH where many come from there, a proxy's clients perhaps"


class Peer(Protocol):
    """One connection."""

    def cut_off(self) -> None:
        """Closes it at once."""


class Doors:
    """Of one server."""

    def __init__(self, wanted: int, each: int, files: int) -> None:
        """`wanted` connections in all (0: as usual), half of `files` at most; `each` of one address (0: as many)."""
        limit = min(wanted or _USUALLY, max(files // _OWN_SHARE, 1))
        if limit < wanted:
            log.warning("fewer connections over HTTP than wanted: too few files", limit=limit, do="raise ulimit -n")
        self.limit = limit
        """Of connections in all."""
        self._each = min(each or limit, limit)
        self._peers: dict[Peer, Whose] = {}  # who came first is the first
        self._places: Ranks[str] = Ranks()
        self._waiting: Waiting[Peer] = Waiting()
        self._few = FewLines(1, _SECONDS)
        self.ended: Counter[str] = Counter()
        """How many were too many, by what became of them."""

    @property
    def inside(self) -> int:
        """Who is connected."""
        return len(self._peers)

    def whose(self, peer: Peer) -> Whose:
        """Who has a connection."""
        return self._peers.get(peer, _NOBODY)

    def come(self, peer: Peer, address: str) -> bool:
        """A socket was accepted: whether there is room, which another one may have to make."""
        whose = Whose(place_of(address))
        if not (self._has_room_there(whose.place, address) and self._has_room(whose.place, address)):
            return False
        self._peers[peer] = whose
        self._places.add(whose.place)
        self._waiting.add(peer, whose)
        return True

    def signed_in(self, peer: Peer, user: str) -> None:
        """It has asked for something as that user."""
        before = self._peers.get(peer)
        if before is None or before.user == user:
            return
        self._peers[peer] = now = Whose(before.place, user)
        if self._waiting.remove(peer, before):
            self._waiting.add(peer, now)

    def client_s_turn(self, peer: Peer) -> None:
        """To ask, or to go on asking."""
        if whose := self._peers.get(peer):
            self._waiting.add(peer, whose)

    def server_s_turn(self, peer: Peer) -> None:
        """A request is there, whole."""
        if whose := self._peers.get(peer):
            self._waiting.remove(peer, whose)

    def leave(self, peer: Peer) -> None:
        """It is gone."""
        if whose := self._peers.pop(peer, None):
            self._waiting.remove(peer, whose)
            self._places.remove(whose.place)

    def _has_room_there(self, place: str, address: str) -> bool:
        if self._places[place] < self._each:
            return True
        do = _OF_ONE if self._each < self.limit else _IN_ALL
        return self._make_room(self._waiting.longest(place), self._each, do, address)

    def _has_room(self, place: str, address: str) -> bool:
        return self.inside < self.limit or self._make_room(self._in_favour_of(place), self.limit, _IN_ALL, address)

    def _in_favour_of(self, place: str) -> Peer | None:
        """Who makes room for one more there: who has no more than the next one will have keeps what it has."""
        longest, own = self._waiting.longest(), self._places[place]
        if longest and self._places[self._peers[longest].place] > max(own, 1):
            return longest
        return self._waiting.longest(place) if own else self._of_the_most() or longest

    def _of_the_most(self) -> Peer | None:
        """Of several that one address has: who waits for longest, or is connected for longest."""
        most = self._places.most
        if most is None or self._places[most] == 1:
            return None
        waiting = self._waiting.longest(most)
        return waiting or next(peer for peer, whose in self._peers.items() if whose.place == most)

    def _make_room(self, peer: Peer | None, limit: int, do: str, address: str) -> bool:
        self.ended[CLOSED if peer else REFUSED] += 1
        what = "too many connections over HTTP: those that ask for nothing, or have most, are closed"
        if peer is None:
            what = "connections over HTTP are refused: as many as may be wait for answers"
        self._few.say(log.warning, what, limit=limit, the_next_from=address, do=do)
        if peer is None:
            return False
        self.leave(peer)
        peer.cut_off()
        return True
