"""What can go wrong between a client and a broker, as types that know how much must die of it.

    BrokerError
    ├── NotFound            404  no such exchange, queue or virtual host
    ├── AccessRefused       403  the user may not, or the name is reserved
    ├── ResourceLocked      405  somebody else's exclusive queue
    ├── PreconditionFailed  406  it exists with other properties; in use; not empty
    ├── NotAllowed          530  never possible for this connection
    ├── CommandInvalid      503  the command itself makes no sense here
    ├── SyntaxFault         502  an argument cannot be read or is out of range
    ├── NotImplementedHere  540  known, and not offered
    ├── ResourceError       506  not enough of something (limits, memory)
    ├── ConnectionForced    320  the broker ends the connection
    ├── Unavailable         541  a service cannot be reached for too long
    │   └── WrongPeer            somebody else has its address
    └── InternalError       541  our fault

`code` is the AMQP 0-9-1 reply code (section 1.2 of its XML); the other protocols map the class.
An error crosses gRPC as a status whose trailing metadata names the class: `abort` there, `from_rpc` here.
"""

from __future__ import annotations

import enum
from typing import ClassVar, NoReturn

import grpc
import grpc.aio

KIND_KEY = "hopline-error"


class Reach(enum.Enum):
    """How much of a connection an error ends."""

    LINK = "link"
    SESSION = "session"
    CONNECTION = "connection"


class BrokerError(Exception):
    """An error that a client is told of in its protocol's own words; `text` is for humans."""

    code: ClassVar[int] = 541
    reach: ClassVar[Reach] = Reach.SESSION
    status: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class NotFound(BrokerError):
    code = 404
    status = grpc.StatusCode.NOT_FOUND


class AccessRefused(BrokerError):
    code = 403
    status = grpc.StatusCode.PERMISSION_DENIED


class ResourceLocked(BrokerError):
    code = 405
    status = grpc.StatusCode.FAILED_PRECONDITION


class PreconditionFailed(BrokerError):
    code = 406
    status = grpc.StatusCode.FAILED_PRECONDITION


class NotAllowed(BrokerError):
    code = 530
    reach = Reach.CONNECTION
    status = grpc.StatusCode.PERMISSION_DENIED


class CommandInvalid(BrokerError):
    code = 503
    reach = Reach.CONNECTION
    status = grpc.StatusCode.INVALID_ARGUMENT


class SyntaxFault(BrokerError):
    code = 502
    reach = Reach.CONNECTION
    status = grpc.StatusCode.INVALID_ARGUMENT


class NotImplementedHere(BrokerError):
    code = 540
    reach = Reach.CONNECTION
    status = grpc.StatusCode.UNIMPLEMENTED


class ResourceError(BrokerError):
    code = 506
    status = grpc.StatusCode.RESOURCE_EXHAUSTED


class Unavailable(BrokerError):
    code = 541
    reach = Reach.CONNECTION
    status = grpc.StatusCode.UNAVAILABLE
    answered = False  # by a peer that is there, and says what it waits for


class WrongPeer(Unavailable):
    """Whoever answers at an address is not the one who is meant, who is away then."""


class InternalError(BrokerError):
    code = 541
    reach = Reach.CONNECTION
    status = grpc.StatusCode.INTERNAL


class ConnectionForced(BrokerError):
    """The broker ends a connection that did nothing wrong: it shuts down, or an operator asked for it."""

    code = 320
    reach = Reach.CONNECTION
    status = grpc.StatusCode.CANCELLED


class Fenced(BrokerError):
    """The store refused a write: the lease has a newer epoch. Its holder must stop acting for it."""

    status = grpc.StatusCode.ABORTED


_KINDS = {
    kind.__name__: kind
    for kind in (
        NotFound,
        AccessRefused,
        ResourceLocked,
        PreconditionFailed,
        NotAllowed,
        CommandInvalid,
        SyntaxFault,
        NotImplementedHere,
        ResourceError,
        Unavailable,
        WrongPeer,
        InternalError,
        ConnectionForced,
        Fenced,
    )
}


# Statuses that are no BrokerError's, and yet do not mean that the peer is away: it would answer the same again.
_NOT_AWAY = {
    grpc.StatusCode.UNKNOWN: InternalError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceError,
}
_LONGEST_TEXT = 2000  # bytes: gRPC gives a status and all that goes with it 8 KiB


async def abort(context: grpc.aio.ServicerContext[object, object], error: BrokerError) -> NoReturn:
    """Ends an RPC with `error`, for `from_rpc` at the other end."""
    text = error.text.encode(errors="replace")[:_LONGEST_TEXT].decode(errors="ignore")
    await context.abort(error.status, text, trailing_metadata=((KIND_KEY, type(error).__name__),))
    raise AssertionError("abort returns never")


def was_answered(failure: grpc.aio.AioRpcError | BrokerError) -> bool:
    """Whether the peer ended the call by `abort`: then it was there to the end."""
    return isinstance(failure, BrokerError) or any(key == KIND_KEY for key, _ in failure.trailing_metadata() or ())


def from_rpc(failure: grpc.aio.AioRpcError | BrokerError) -> BrokerError:
    """The error that the peer aborted with; when the call itself failed, `Unavailable` unless the peer is there.

    All services know all methods of theirs: one that does not is another one, at an address that was used again.
    """
    if isinstance(failure, BrokerError):
        return failure
    text = failure.details() or failure.code().name
    for key, value in failure.trailing_metadata() or ():
        if key == KIND_KEY and isinstance(value, str) and value in _KINDS:
            error = _KINDS[value](text)
            if isinstance(error, Unavailable):
                error.answered = True
            return error
    if failure.code() is grpc.StatusCode.UNIMPLEMENTED:
        return WrongPeer("somebody else answers at the service's address; try again")
    return _NOT_AWAY.get(failure.code(), Unavailable)(text)
