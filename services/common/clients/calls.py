"""What clients of the services have in common: they end with their block, and raise what they are answered."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from types import TracebackType
from typing import Self, TypeVar

import grpc.aio

from services.common.errors import from_rpc

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
    before = _cancellations()
    try:
        reply = await call
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None
    if _cancellations() > before:  # gRPC forgets one that comes together with the reply
        raise asyncio.CancelledError
    return reply


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


async def stream(call: AsyncIterable[T]) -> AsyncIterator[T]:
    """The replies, one by one. Raises what `result` does."""
    try:
        async for message in call:
            yield message
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None
