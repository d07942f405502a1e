"""Whose a queue alone is, and until when it is there: values, by whichever words a protocol says them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Scope(StrEnum):
    """What somebody is to whom a queue may belong, or with whose end it goes. Written down: values may not change."""

    NOBODY = ""
    CONNECTION = "connection"


class Party(NamedTuple):
    """Somebody: a connection by its name, which no other has in the cluster."""

    scope: Scope = Scope.NOBODY
    name: str = ""

    def __bool__(self) -> bool:
        return self.scope is not Scope.NOBODY

    @property
    def connection(self) -> str:
        """The connection with which they are gone at the latest; "": they are no connection's."""
        return self.name if self.scope is Scope.CONNECTION else ""


NOBODY: Final = Party()


class Unused(StrEnum):
    """When a queue goes by itself that nobody uses any more. Written down: values may not change."""

    STAYS = ""
    NO_LINKS = "no-links"  # its last consumer has gone; 0-9-1: auto-delete


class Life(NamedTuple):
    """Until when a queue is there: until this party's end, or until it is unused, whichever comes first."""

    until: Party = NOBODY
    unused: Unused = Unused.STAYS


PERMANENT: Final = Life()


def of_connection(name: str) -> Party:
    """The connection; nobody for ""."""
    return Party(Scope.CONNECTION, name) if name else NOBODY
