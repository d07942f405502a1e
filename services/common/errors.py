"""What can go wrong between a client and a broker: types that say what happened, and how much it ends.

    BrokerError
    ├── NotFound            no such exchange, queue or virtual host
    ├── AccessRefused       the user may not, or the name is reserved
    ├── ResourceLocked      another connection's exclusive queue
    ├── LinkStolen          another one has taken the link's place
    ├── PreconditionFailed  it exists with other properties; in use; not empty
    │   ├── WrongSelector   what was said to choose messages is no selector
    │   └── Overtaken       somebody else has changed meanwhile what a write to the store rests on
    ├── NotAllowed          never possible for this connection
    ├── CommandInvalid      the command itself makes no sense here
    ├── SyntaxFault         an argument cannot be read or is out of range
    ├── NotImplementedHere  known, and not offered
    ├── ResourceError       not enough of something (limits, memory)
    ├── ConnectionForced    the broker ends the connection
    ├── Unavailable         a service cannot be reached for too long
    │   ├── WrongPeer       another process has its address
    │   └── InDoubt         it is unknown whether a transaction was committed
    ├── Fenced              the store refused a write of a former lease
    └── InternalError       our fault

Each protocol engine has a table from these to its own codes, which `of_kind` reads; `grpc_errors.py` carries them
across gRPC.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import ClassVar, TypeVar

_T = TypeVar("_T")


class Reach(enum.Enum):
    """How much of a connection an error ends."""

    LINK = "link"
    SESSION = "session"
    CONNECTION = "connection"


class BrokerError(Exception):
    """An error that a client is told of in its protocol's own words; `text` is for humans."""

    reach: ClassVar[Reach] = Reach.SESSION

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def with_notes(error: BaseException) -> str:
    """One line: what it says, and what was noted of it for operators. Notes name services: clients never see them."""
    return "; ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])


class NotFound(BrokerError):
    pass


class AccessRefused(BrokerError):
    pass


class ResourceLocked(BrokerError):
    pass


class PreconditionFailed(BrokerError):
    pass


class WrongSelector(PreconditionFailed):
    pass


class Overtaken(PreconditionFailed):
    """The store refused a write: what was read for it is another by now. Its writer reads it again."""


class NotAllowed(BrokerError):
    reach = Reach.CONNECTION


class CommandInvalid(BrokerError):
    reach = Reach.CONNECTION


class SyntaxFault(BrokerError):
    reach = Reach.CONNECTION


class NotImplementedHere(BrokerError):
    reach = Reach.CONNECTION


class ResourceError(BrokerError):
    pass


class Unavailable(BrokerError):
    reach = Reach.CONNECTION
    answered = False  # by a service that runs, and says what it waits for


class WrongPeer(Unavailable):
    """Another process answers at the address of the service, which itself is away."""


class InDoubt(Unavailable):
    """It is unknown whether a transaction was committed."""


class InternalError(BrokerError):
    reach = Reach.CONNECTION


class LinkStolen(BrokerError):
    """Its peer has attached it again, perhaps elsewhere."""

    reach = Reach.LINK


class ConnectionForced(BrokerError):
    """The broker ends a connection that did nothing wrong: it shuts down, or an operator asked for it."""

    reach = Reach.CONNECTION


class Fenced(BrokerError):
    """The store refused a write: the lease has a newer epoch. Its holder must stop acting for it."""


def of_kind(table: Mapping[type[BrokerError], _T], error: BrokerError, otherwise: _T) -> _T:
    """What a table has for the error's kind, or for the nearest kind of which that is one."""
    return next((table[kind] for kind in type(error).__mro__ if kind in table), otherwise)
