"""Whose a queue alone is, and until when it is there: values, by whichever words a protocol says them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Scope(StrEnum):
    """What somebody is to whom a queue may belong, or with whose end it goes. Written down: values may not change."""

    NOBODY = ""
    CONNECTION = "connection"
    SESSION = "session"
    LINK = "link"  # whoever consumes from it, alone
    CONTAINER = "container"  # an application, by what it calls itself, on whichever connection
    PRINCIPAL = "principal"  # a user


class Party(NamedTuple):
    """Somebody. A connection's name no other has in the cluster; a session has that of its connection, and a
    number that none had before.
    """

    scope: Scope = Scope.NOBODY
    name: str = ""

    def __bool__(self) -> bool:
        return self.scope is not Scope.NOBODY

    @property
    def connection(self) -> str:
        """The connection with which they are gone at the latest; "": they are no connection's."""
        if self.scope is Scope.SESSION:
            return self.name.rpartition("/")[0]
        return self.name if self.scope is Scope.CONNECTION else ""


NOBODY: Final = Party()
ANY_LINK: Final = Party(Scope.LINK)
"""One consumer at a time."""


class Unused(StrEnum):
    """When a queue goes by itself that nobody uses any more. Written down: values may not change."""

    STAYS = ""
    NO_LINKS = "no-links"  # its last consumer has gone; 0-9-1: auto-delete


class Life(NamedTuple):
    """Until when a queue is there: until this party's end, or until it is unused, whichever comes first."""

    until: Party = NOBODY
    unused: Unused = Unused.STAYS


PERMANENT: Final = Life()


class Asker(NamedTuple):
    """Who asks for something, by all that a queue may belong to; without a connection it is the broker itself."""

    connection: str = ""
    session: str = ""
    container: str = ""
    principal: str = ""

    def party(self, scope: Scope) -> Party:
        """Who they are in this scope; nobody, where they are none."""
        names = {
            Scope.CONNECTION: self.connection,
            Scope.SESSION: f"{self.connection}/{self.session}" if self.connection and self.session else "",
            Scope.CONTAINER: self.container,
            Scope.PRINCIPAL: self.principal,
        }
        return Party(scope, name) if (name := names.get(scope, "")) else NOBODY

    def may_use(self, owner: Party) -> bool:
        """Whether a queue of this owner is theirs, or anybody's. The broker may use them all."""
        return not self.connection or not owner or owner == ANY_LINK or owner == self.party(owner.scope)


def of_connection(name: str) -> Party:
    """The connection; nobody for ""."""
    return Asker(name).party(Scope.CONNECTION)
