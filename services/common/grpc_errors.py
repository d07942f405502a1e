"""Errors across gRPC: a status whose trailing metadata names the class. Servers `abort`, clients use `from_rpc`."""

from __future__ import annotations

from typing import NoReturn

import grpc
import grpc.aio

from services.common.errors import (
    AccessRefused,
    BrokerError,
    CommandInvalid,
    ConnectionForced,
    Fenced,
    InDoubt,
    InternalError,
    LinkStolen,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    Overtaken,
    PreconditionFailed,
    ResourceError,
    ResourceLocked,
    SyntaxFault,
    Unavailable,
    WrongPeer,
    WrongSelector,
)

KIND_KEY = "hopline-error"

_STATUSES: dict[type[BrokerError], grpc.StatusCode] = {
    NotFound: grpc.StatusCode.NOT_FOUND,
    AccessRefused: grpc.StatusCode.PERMISSION_DENIED,
    ResourceLocked: grpc.StatusCode.FAILED_PRECONDITION,
    LinkStolen: grpc.StatusCode.FAILED_PRECONDITION,
    PreconditionFailed: grpc.StatusCode.FAILED_PRECONDITION,
    Overtaken: grpc.StatusCode.FAILED_PRECONDITION,
    WrongSelector: grpc.StatusCode.FAILED_PRECONDITION,
    NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    CommandInvalid: grpc.StatusCode.INVALID_ARGUMENT,
    SyntaxFault: grpc.StatusCode.INVALID_ARGUMENT,
    NotImplementedHere: grpc.StatusCode.UNIMPLEMENTED,
    ResourceError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    WrongPeer: grpc.StatusCode.UNAVAILABLE,
    InDoubt: grpc.StatusCode.UNAVAILABLE,
    InternalError: grpc.StatusCode.INTERNAL,
    ConnectionForced: grpc.StatusCode.CANCELLED,
    Fenced: grpc.StatusCode.ABORTED,
    BrokerError: grpc.StatusCode.INTERNAL,
}
_KINDS = {kind.__name__: kind for kind in _STATUSES if kind is not BrokerError}
# Statuses without a BrokerError of a peer that is not away: it would answer the same again.
_NOT_AWAY = {
    grpc.StatusCode.UNKNOWN: InternalError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceError,
}
_LONGEST_TEXT = 2000  # bytes: gRPC limits a status and its metadata to 8 KiB


async def abort(context: grpc.aio.ServicerContext[object, object], error: BrokerError) -> NoReturn:
    """Ends an RPC with `error`, for `from_rpc` on the client's side."""
    text = error.text.encode(errors="replace")[:_LONGEST_TEXT].decode(errors="ignore")
    kind = next(kind for kind in type(error).__mro__ if kind in _STATUSES)  # a service may derive its own
    await context.abort(_STATUSES[kind], text, trailing_metadata=((KIND_KEY, kind.__name__),))
    raise AssertionError("abort returns never")


def was_answered(failure: grpc.aio.AioRpcError | BrokerError) -> bool:
    """Whether the peer ended the call by `abort`: then it was alive to the end."""
    return isinstance(failure, BrokerError) or any(key == KIND_KEY for key, _ in failure.trailing_metadata() or ())


def from_rpc(failure: grpc.aio.AioRpcError | BrokerError) -> BrokerError:
    """The error that the peer aborted with; when the call itself failed, `Unavailable` unless the peer is there.

    A service knows all methods that it offers: a peer that lacks one is another service, at an address used again.
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
        return WrongPeer("another process answers at the service's address; try again")
    return _NOT_AWAY.get(failure.code(), Unavailable)(text)
