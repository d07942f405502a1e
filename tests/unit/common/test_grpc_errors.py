"""Errors that cross gRPC."""

from __future__ import annotations

import inspect
from typing import Any, cast

import grpc
import grpc.aio
import pytest

from services.common import errors
from services.common.authentication.refusal import TooManyFailures
from services.common.errors import BrokerError, InternalError, ResourceError, Unavailable, WrongPeer
from services.common.grpc_errors import abort, from_rpc

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BrokerError) and kind is not BrokerError
]


class _Context:
    """Keeps what a call is ended with, as the other end is told it."""

    async def abort(self, status: grpc.StatusCode, text: str, trailing_metadata: Any) -> None:
        metadata = grpc.aio.Metadata(*trailing_metadata)
        raise grpc.aio.AioRpcError(status, grpc.aio.Metadata(), metadata, text)


async def _failure(error: BrokerError) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await abort(cast("Any", _Context()), error)
    return failure.value


@pytest.mark.parametrize("kind", KINDS)
async def test_every_error_arrives_as_what_it_was(kind: type[BrokerError]) -> None:
    """Its type, with its reach, and its text."""
    arrived = from_rpc(await _failure(kind("why")))
    assert (type(arrived), arrived.text) == (kind, "why")


async def test_a_kind_of_another_error_has_its_status() -> None:
    """One that the other end does not know by name is told by the status of what it is a kind of."""
    failure = await _failure(TooManyFailures("later"))
    assert failure.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Unavailable),
        (grpc.StatusCode.UNIMPLEMENTED, WrongPeer),
        (grpc.StatusCode.UNKNOWN, InternalError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ResourceError),
    ],
)
def test_what_grpc_says_itself(status: grpc.StatusCode, kind: type[BrokerError]) -> None:
    """A peer that is there and cannot answer is told apart from one that is away."""
    none = grpc.aio.Metadata()
    assert type(from_rpc(grpc.aio.AioRpcError(status, none, none, ""))) is kind
