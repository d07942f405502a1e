"""Whose a queue alone is, and until when it is there: values, by whichever words a protocol says them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import quote


class Scope(StrEnum):
    """What somebody is to whom a queue may belong, or with whose end it goes. Written down: values may not change."""

    NOBODY = ""
    CONNECTION = "connection"
    SESSION = "session"
    LINK = "link"  # one link of a session; as an owner without a name, whoever consumes from it, alone
    CONTAINER = "container"  # an application, by what it calls itself, on whichever connection
    PRINCIPAL = "principal"  # a user
    PRINCIPAL_CONTAINER = "principal_container"  # an application of one user: what others call themselves is theirs


_PARTS: Final = {Scope.SESSION: 1, Scope.LINK: 2}  # of a name, behind the connection's


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
        if parts := _PARTS.get(self.scope):
            return self.name.rsplit("/", parts)[0]
        return self.name if self.scope is Scope.CONNECTION else ""

    def is_of(self, other: Party) -> bool:
        """Whether they are this other one, or a part of it: a link of a session, for one."""
        return bool(self) and (self == other or self.name.startswith(f"{other.name}/"))


NOBODY: Final = Party()
ANY_LINK: Final = Party(Scope.LINK)
"""One consumer at a time."""


class Unused(StrEnum):
    """When a queue goes by itself that nobody uses any more. Written down: values may not change.

    The last three are AMQP 1.0's, for a queue that a link has made: not as long as that link is there.
    """

    STAYS = ""
    NO_CONSUMERS = "no-consumers"  # its last one has gone; 0-9-1: auto-delete
    NO_LINKS = "no-links"  # it has no consumers, though it never had any
    NO_MESSAGES = "no-messages"  # it is empty
    NO_LINKS_OR_MESSAGES = "no-links-or-messages"  # both

    @property
    def by_links(self) -> bool:
        """Whether consumers keep it."""
        return self is not Unused.STAYS and self is not Unused.NO_MESSAGES

    @property
    def by_messages(self) -> bool:
        """Whether messages keep it."""
        return self in (Unused.NO_MESSAGES, Unused.NO_LINKS_OR_MESSAGES)

    @property
    def is_made(self) -> bool:
        """Whether it is for a queue that a link has made."""
        return self not in (Unused.STAYS, Unused.NO_CONSUMERS)


class Life(NamedTuple):
    """Until when a queue is there: until this party's end, or until it is unused, whichever comes first.

    It is not unused while the link is there that has made it.
    """

    until: Party = NOBODY
    unused: Unused = Unused.STAYS
    maker: Party = NOBODY

    @property
    def connection(self) -> str:
        """The one whose end it has to hear of; or ""."""
        return self.until.connection or self.maker.connection


PERMANENT: Final = Life()


class Asker(NamedTuple):
    """Who asks for something, by all that a queue may belong to; without a connection it is the broker itself."""

    connection: str = ""
    session: str = ""
    container: str = ""
    principal: str = ""
    link: str = ""

    def party(self, scope: Scope) -> Party:
        """Who they are in this scope; nobody, where they are none."""
        session = f"{self.connection}/{self.session}" if self.connection and self.session else ""
        both = self.principal and self.container
        names = {
            Scope.CONNECTION: self.connection,
            Scope.SESSION: session,
            Scope.LINK: f"{session}/{self.link}" if session and self.link else "",
            Scope.CONTAINER: self.container,
            Scope.PRINCIPAL: self.principal,
            Scope.PRINCIPAL_CONTAINER: f"{quote(self.principal, safe='')}/{self.container}" if both else "",
        }
        return Party(scope, name) if (name := names.get(scope, "")) else NOBODY

    def may_use(self, owner: Party) -> bool:
        """Whether a queue of this owner is theirs, or anybody's. The broker may use them all."""
        return not self.connection or not owner or owner == ANY_LINK or owner == self.party(owner.scope)


def of_connection(name: str) -> Party:
    """The connection; nobody for ""."""
    return Party(Scope.CONNECTION, name) if name else NOBODY
