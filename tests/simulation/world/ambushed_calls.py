"""Calls that ambushes may meet: the product's own servers, with an interceptor more."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import grpc
import grpc.aio

from tests.simulation.world.ambush import ANSWERED, ASKED, RECEIVED, Ambushes

_KINDS = {False: "unary", True: "stream"}
_Meet = Callable[[str], Awaitable[None]]


class AmbushedCalls(grpc.aio.ServerInterceptor):
    """Is to be the last one, next to the servicer: an ambush is met where something has happened or not."""

    def __init__(self, ambushes: Ambushes) -> None:
        self._ambushes = ambushes

    async def intercept_service(self, continuation: Any, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """As grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind = f"{_KINDS[handler.request_streaming]}_{_KINDS[handler.response_streaming]}"
        inner, path = getattr(handler, kind), handler_call_details.method

        async def meet(moment: str) -> None:
            await self._ambushes.meet(path, moment)

        ambushed = _stream if inspect.isasyncgenfunction(inner) else _single
        return handler._replace(**{kind: ambushed(inner, meet, asks_many=handler.request_streaming)})


def _single(inner: Any, meet: _Meet, *, asks_many: bool) -> Callable[[Any, Any], Awaitable[Any]]:
    async def call(request: Any, context: Any) -> Any:
        await meet(ASKED)
        answer = await inner(_each(request, meet) if asks_many else request, _Context(context, meet, asks_many))
        await meet(ANSWERED)
        return answer

    return call


def _stream(inner: Any, meet: _Meet, *, asks_many: bool) -> Callable[[Any, Any], AsyncIterator[Any]]:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        await meet(ASKED)
        asked = _each(request, meet) if asks_many else request
        async with aclosing(inner(asked, _Context(context, meet, asks_many))) as answers:
            async for answer in answers:
                await meet(ANSWERED)
                yield answer
        await meet(ANSWERED)

    return call


async def _each(requests: AsyncIterator[Any], meet: _Meet) -> AsyncIterator[Any]:
    async for request in requests:
        await meet(RECEIVED)
        yield request


class _Context:
    """The call's, which meets ambushes where a servicer reads and writes by it."""

    def __init__(self, context: Any, meet: _Meet, asks_many: bool) -> None:
        self._context = context
        self._meet = meet
        self._asks_many = asks_many

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def read(self) -> Any:
        """As grpc.aio.ServicerContext."""
        request = await self._context.read()
        if self._asks_many and request is not grpc.aio.EOF:
            await self._meet(RECEIVED)
        return request

    async def write(self, response: Any) -> None:
        """As grpc.aio.ServicerContext."""
        await self._meet(ANSWERED)
        await self._context.write(response)
