"""Calls of the in-memory gRPC, as grpc.aio has them: one class for all four kinds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

if TYPE_CHECKING:
    from tests.simulation.world.grpc_client import ClientEnd, Method

EOF_MESSAGE = grpc.aio.EOF
Codes = grpc.StatusCode


class Call:
    """As grpc.aio's four kinds of calls."""

    def __init__(self, method: Method, request: Any, timeout: float | None, metadata: Any, waits: bool) -> None:
        self.waits = waits
        self.number = 0
        self.end: ClientEnd | None = None
        self._method = method
        self._channel = method.channel
        self._loop = method.channel.loop
        self._metadata = tuple(metadata or ())
        self._messages: deque[bytes] = deque()
        self._status: tuple[grpc.StatusCode, str, Any] | None = None
        self._cancelled = False
        self._wrote_all = not method.asks_many
        self._waiters: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[Any], None]] = []
        self._answers: AsyncIterator[Any] | None = None
        self._first = None if method.asks_many else method.serialize(request)
        self._timer = self._loop.call_later(timeout, self._late) if timeout is not None else None
        self._poller = (
            self._loop.create_task(self._poll(request), name="gRPC requests")
            if method.asks_many and request is not None
            else None
        )
        self._channel.begin(self)

    # -------------------------------------------------------------- the connection says

    def started(self) -> None:
        assert self.end is not None
        self.end.send("call", self.number, self._method.method, self._metadata, self._first)
        self._notify()

    def received(self, payload: bytes) -> None:
        self._messages.append(payload)
        self._notify()

    def finish(self, code: grpc.StatusCode, details: str, trailing: Any = ()) -> None:
        """It has ended, by either end."""
        if self._status is not None:
            return
        self._status = (code, details, trailing)
        if self.end:
            self.end.calls.pop(self.number, None)
        self._channel.forget(self)
        if self._timer:
            self._timer.cancel()
        if self._poller:
            self._poller.cancel()
        self._notify()
        for callback in self._callbacks:
            self._loop.call_soon(callback, self)

    def _late(self) -> None:
        if self._status is None and self.end:
            self.end.send("cancel", self.number)
        self.finish(Codes.DEADLINE_EXCEEDED, "Deadline Exceeded")

    # -------------------------------------------------------------- grpc.aio.Call

    def done(self) -> bool:
        return self._status is not None

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> bool:
        if self._status is not None:
            return False
        self._cancelled = True
        if self.end:
            self.end.send("cancel", self.number)
        self.finish(Codes.CANCELLED, "Locally cancelled by application!")
        return True

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    async def code(self) -> grpc.StatusCode:
        await self._ended()
        assert self._status is not None
        return self._status[0]

    async def details(self) -> str:
        await self._ended()
        assert self._status is not None
        return self._status[1]

    async def wait_for_connection(self) -> None:
        while not self.end and self._status is None:
            await self._change()
        self._raise_if_failed()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._response().__await__()

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._answers is None:
            self._answers = self._all()
        return self._answers

    async def read(self) -> Any:
        """The next message, or EOF."""
        if self._status is not None and not self._messages:
            self._raise_if_failed()
            return EOF_MESSAGE
        message = await self._read()
        if message is EOF_MESSAGE:
            self._raise_if_failed()
        return message

    async def write(self, request: Any) -> None:
        """Returns when it was sent."""
        if self._status is not None or self._wrote_all:
            raise asyncio.InvalidStateError("RPC already finished.")
        payload = self._method.serialize(request)
        while not self.end and self._status is None:
            await self._change()
        if self._status is not None:
            self._raise_if_failed()
            raise asyncio.InvalidStateError("RPC already finished.")
        assert self.end is not None
        self.end.send("message", self.number, payload)

    async def done_writing(self) -> None:
        """Says that there are no more requests."""
        while not self.end and self._status is None:
            await self._change()
        if not self._wrote_all and self._status is None and self.end:
            self._wrote_all = True
            self.end.send("close", self.number)

    # -------------------------------------------------------------- inside

    async def _poll(self, requests: Any) -> None:
        async for request in requests:
            try:
                await self.write(request)
            except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
                return
        await self.done_writing()

    async def _response(self) -> Any:
        await self._ended()
        if self._messages and self._status and self._status[0] is Codes.OK:
            return self._method.deserialize(self._messages[0])
        self._raise_if_failed()
        raise grpc.aio.AioRpcError(Codes.INTERNAL, details="a call without an answer")

    async def _all(self) -> AsyncIterator[Any]:
        while (message := await self._read()) is not EOF_MESSAGE:
            yield message
        self._raise_if_failed()

    async def _read(self) -> Any:
        while not self._messages:
            if self._status is not None:
                return EOF_MESSAGE
            await self._change()
        return self._method.deserialize(self._messages.popleft())

    async def _ended(self) -> None:
        while self._status is None:
            await self._change()

    async def _change(self) -> None:
        """A task that is cancelled while it waits cancels the call."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _notify(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _raise_if_failed(self) -> None:
        if self._cancelled:
            raise asyncio.CancelledError
        assert self._status is not None
        code, details, trailing = self._status
        if code is not Codes.OK:
            raise grpc.aio.AioRpcError(code, trailing_metadata=trailing, details=details)
