"""How many may be connected to a gateway, and how many may be on their way in.

A client is refused in its protocol's words, so it is admitted as far as connection.open; for that there are always some
sockets more than connections. When peers that do not finish their handshake use them up, one of these is closed for the
next: of the address that has most of them, the one that takes longest. Real handshakes take milliseconds, but who opens
thousands in a second from one address would close them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from services.common.authentication.attempts import place_of
from services.common.crowd import Waiting, Whose
from services.common.errors import NotAllowed
from services.common.streams import newcomers
from services.gateway.connections.strangers import STRANGERS

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection

log = structlog.get_logger()

_OWN_FILES = 128  # of a gateway for itself: links, logs, spans; and as many as strangers may take at its gRPC port
_SPARE = 10  # one socket in so many, or a hundred, is for handshakes
_LEAST_SPARE = 100
_FILES = "raise ulimit -n, or add gateways"
_FULL = "close some, add gateways, or raise HOPLINE_MAX_CONNECTIONS and ulimit -n"


class Doors:
    """The connections of one gateway, counted."""

    def __init__(self, wanted: int, files: int) -> None:
        """`wanted` connections at most; 0 for as many as the limit of open files allows."""
        sockets = max(files - _OWN_FILES - newcomers.most_of(files), 2)
        spare = min(max(sockets // _SPARE, _LEAST_SPARE), sockets // 2)
        self.limit = min(wanted or sockets, sockets - spare)
        if wanted > self.limit:
            log.warning("fewer connections than wanted: too few files", wanted=wanted, limit=self.limit, do=_FILES)
        self.sockets = min(self.limit + max(self.limit // _SPARE, _LEAST_SPARE), sockets)
        self._coming: dict[Connection, Whose] = {}
        self._waiting: Waiting[Connection] = Waiting()  # those that are coming, by address
        self._in: dict[Connection, None] = {}
        self._told: set[str] = set()

    @property
    def inside(self) -> int:
        """How many are connected."""
        return len(self._in)

    @property
    def coming(self) -> int:
        """How many have not finished their handshake."""
        return len(self._coming)

    def come(self, connection: Connection) -> None:
        """A socket was accepted."""
        self._comes_from(connection)
        if len(self._coming) + len(self._in) > self.sockets and (longest := self._longest()):
            self._comes_no_more(longest)
            self._tell(
                "too many peers that have not signed in: those of who has most are closed for the next", STRANGERS
            )
            longest.cut_off()

    def enter(self, connection: Connection) -> None:
        """Admits a client that has signed in; raises NotAllowed when the limit is reached."""
        self.check()
        self._comes_no_more(connection)
        self._in[connection] = None

    def check(self) -> None:
        """Raises NotAllowed when the limit is reached."""
        if len(self._in) >= self.limit:
            self._tell("connections are refused: the limit is reached", _FULL)
            raise NotAllowed(f"connection refused: the limit of connections ({self.limit}) is reached")

    def leave(self, connection: Connection) -> None:
        """The connection is gone."""
        self._comes_no_more(connection)
        self._in.pop(connection, None)
        if self._told and len(self._coming) + len(self._in) < self.limit * 9 // 10:
            self._told.clear()

    def _comes_from(self, connection: Connection) -> None:
        self._coming[connection] = whose = Whose(place_of(connection.peer_host))
        self._waiting.add(connection, whose)

    def _comes_no_more(self, connection: Connection) -> None:
        if whose := self._coming.pop(connection, None):
            self._waiting.remove(connection, whose)

    def _longest(self) -> Connection | None:
        """Of the address that has most; a balancer may have said meanwhile where some of its peers are."""
        while longest := self._waiting.longest():
            if self._coming[longest].place == place_of(longest.peer_host):
                return longest
            self._comes_no_more(longest)
            self._comes_from(longest)
        return None

    def _tell(self, what: str, do: str) -> None:
        """Logs it once, until there is room again."""
        if what not in self._told:
            self._told.add(what)
            log.warning(what, connections=len(self._in), limit=self.limit, unopened=len(self._coming), do=do)
