"""A call to one of gRPC's own servicers (health, reflection), written for grpc.aio, on one of our streams."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable
from typing import Any, NoReturn

import grpc
import structlog

from services.common.runtime import Tasks
from services.common.streams.grpc_fields import trailers
from services.common.streams.stream import Stream

log = structlog.get_logger()

_UNREAD = 1000  # messages that a peer may send before they are answered


class Aborted(Exception):
    """The servicer ended the call with another status than OK."""

    def __init__(self, status: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Call:
    """Listens to the stream, and is the servicer's context."""

    def __init__(self, stream: Stream, handler: Any, tasks: Tasks, largest: int) -> None:  # noqa: ANN401 - generic in its stubs only
        """`handler` is a grpc.RpcMethodHandler over coroutines or asynchronous generators.

        A request may have `largest` octets.
        """
        self._stream = stream
        self._handler = handler
        self._largest = largest
        self._heard = False
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task = tasks.start(self._run(), "gRPC call")

    # -------------------------------------------------------------- the stream says

    def received(self, message: bytes) -> None:
        if self._heard and not self._handler.request_streaming:
            self._refuse(grpc.StatusCode.INTERNAL, "a second request, of a call that has one")
        elif len(message) > self._largest:
            self._refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, f"a request has {self._largest} octets at most")
        elif self._requests.qsize() >= _UNREAD:
            self._refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "more requests than are answered")
        else:
            self._heard = True
            self._requests.put_nowait(message)

    def no_more(self) -> None:
        """The client sends no more requests."""
        self._requests.put_nowait(None)

    def writable(self) -> None:
        """Answers are few and small: they are written without waiting."""

    def ended(self, _reason: str) -> None:
        self._task.cancel()

    # -------------------------------------------------------------- the servicer says

    async def write(self, response: Any) -> None:  # noqa: ANN401 - the method's response type
        """As grpc.aio.ServicerContext."""
        self._stream.write(self._handler.response_serializer(response))

    async def abort(self, code: grpc.StatusCode, details: str = "", _trailing_metadata: object = ()) -> NoReturn:
        """As grpc.aio.ServicerContext."""
        raise Aborted(code, details)

    def _refuse(self, status: grpc.StatusCode, text: str) -> None:
        self._task.cancel()
        self._stream.end(trailers(status, text))

    async def _run(self) -> None:
        status, text = grpc.StatusCode.OK, ""
        try:
            await self._answer()
        except Aborted as aborted:
            status, text = aborted.status, aborted.text
        except Exception as failure:
            log.exception("a gRPC call failed; this is a fault of ours")
            status, text = grpc.StatusCode.UNKNOWN, type(failure).__name__
        self._stream.end(trailers(status, text))

    async def _answer(self) -> None:
        handler = self._handler
        kinds = (
            "stream" if handler.request_streaming else "unary",
            "stream" if handler.response_streaming else "unary",
        )
        request = self._all() if handler.request_streaming else await self._one()
        answer = getattr(handler, "_".join(kinds))(request, self)
        if inspect.isasyncgen(answer):
            async for response in answer:
                await self.write(response)
        else:
            await self._written(answer)

    async def _written(self, answer: Awaitable[Any]) -> None:
        response = await answer
        if response is not None:
            await self.write(response)

    async def _one(self) -> Any:  # noqa: ANN401 - the method's request type
        message = await self._requests.get()
        if message is None:
            raise Aborted(grpc.StatusCode.INTERNAL, "a call without a request")
        return self._parsed(message)

    async def _all(self) -> AsyncIterator[Any]:
        while (message := await self._requests.get()) is not None:
            yield self._parsed(message)

    def _parsed(self, message: bytes) -> Any:  # noqa: ANN401 - the method's request type
        try:
            return self._handler.request_deserializer(message)
        except Exception:  # noqa: BLE001 - the peer sent what the deserializer rejects
            raise Aborted(grpc.StatusCode.INTERNAL, "the request cannot be read") from None
