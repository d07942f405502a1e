"""What clients of the services have in common: `async with` closes them, and they raise the error they are answered."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from types import TracebackType
from typing import Self, TypeVar

import grpc.aio

from services.common.grpc_errors import from_rpc

T = TypeVar("T")


class Client(ABC):
    """Connections that `async with` closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Ends the connections."""


async def result(call: Awaitable[T]) -> T:
    """The reply. Raises the BrokerError that the service answered with, or Unavailable."""
    before = cancellations()
    try:
        with unless_given_up():
            reply = await call
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None
    if cancellations() > before:  # gRPC loses a cancellation that comes together with the reply
        raise asyncio.CancelledError
    return reply


class unless_given_up:  # noqa: N801 - used as a function: one of contextlib's would take thrice as many calls
    """A call that ends because its channel was closed has failed; it ends as cancelled only if its task was cancelled.

    gRPC cancels the calls of a closed channel, so their callers would see a cancellation that no task asked for.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = cancellations()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not asyncio.CancelledError or cancellations() > self._before:
            return
        unavailable, nothing = grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(unavailable, nothing, nothing, "its connection was given up") from None


def cancellations() -> int:
    """How often the present task was asked to end."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


async def stream(call: AsyncIterable[T]) -> AsyncIterator[T]:
    """The replies, one by one. Raises what `result` does."""
    try:
        with unless_given_up():
            async for message in call:
                yield message
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None
