"""A call of a service, on a stream of a channel: the client's end. As grpc.aio has it: one class for all four kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from services.common.http2.errors import ErrorCode
from services.common.streams.endpoint import LARGEST_MESSAGE
from services.common.streams.grpc_fields import Metadata, Outcome
from services.common.streams.unread import Unread
from services.common.streams.waiters import Waiters

if TYPE_CHECKING:
    from services.common.streams.channel import Channel
    from services.common.streams.method import Method
    from services.common.streams.stream import Stream

_CANCELLED = Outcome(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
_LATE = Outcome(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time: what was asked for may be done all the same")
_LOST = Outcome(grpc.StatusCode.UNAVAILABLE, "the connection was lost")


class ClientCall:
    """Listens to its stream, once there is a connection."""

    def __init__(
        self, channel: Channel, method: Method, request: Any, timeout: float | None, metadata: Metadata, *, waits: bool  # noqa: ANN401 - the method's request type
    ) -> None:  # fmt: skip
        """`request`: one, or an iterator of several, or None where they are written; `timeout` in seconds.

        `waits`: for a connection, however often none can be made; else the call fails with UNAVAILABLE then.
        """
        self.waits = waits
        self.method = method
        self.metadata = metadata
        self.outcome: Outcome | None = None
        self.first = None if method.asks_many else method.serialize(request)
        self._channel = channel
        self._stream: Stream | None = None
        self._unread = Unread()
        self._waiters = Waiters()
        self._callbacks: list[Callable[[Any], None]] = []
        self._wrote_all = not method.asks_many
        self._again = True
        self._listener: Callable[[Any], None] | None = None
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(timeout, self._late) if timeout is not None else None
        many = method.asks_many and request is not None
        self._poller = loop.create_task(self._poll(request), name="gRPC requests") if many else None
        if self.first is None or len(self.first) <= LARGEST_MESSAGE or not self._is_too_large(self.first):
            channel.begin(self)

    # -------------------------------------------------------------- the channel says

    def began(self, stream: Stream) -> None:
        """There is a connection, and the call has its stream on it."""
        self._stream = stream
        self._unread.of(stream)
        if self._waiters:
            self._waiters.wake()

    def refused(self) -> bool:
        """The peer has not looked at the call; whether it can be made again elsewhere, which it is once."""
        again, self._again = self._again and self.first is not None and self.outcome is None, False
        if again:
            self._stream = None
        return again

    def finish(self, outcome: Outcome) -> None:
        """It has ended, by either end."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        self._channel.forget(self)
        if self._timer:
            self._timer.cancel()
        if self._poller:
            self._poller.cancel()
        self._waiters.wake()
        for callback in self._callbacks:
            asyncio.get_running_loop().call_soon(callback, self)

    # -------------------------------------------------------------- the stream says

    def received(self, message: bytes) -> None:
        if self._listener:
            self._listener(self.method.deserialize(message))
        else:
            self._unread.add(message)
            if self._waiters:
                self._waiters.wake()

    def writable(self) -> None:
        self._waiters.wake()

    def ended(self, reason: str) -> None:
        self.finish(_LOST._replace(text=reason or _LOST.text))

    # -------------------------------------------------------------- as grpc.aio.Call

    def done(self) -> bool:
        """Whether it has ended."""
        return self.outcome is not None

    def cancelled(self) -> bool:
        """Whether `cancel` ended it."""
        return self.outcome is _CANCELLED

    def cancel(self) -> bool:
        """Ends it, unless it has ended; whether it did."""
        return self._end(_CANCELLED)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Called with the call when it has ended, later at any rate."""
        if self.outcome is None:
            self._callbacks.append(callback)
        else:
            asyncio.get_running_loop().call_soon(callback, self)

    async def code(self) -> grpc.StatusCode:
        """The status, once it has ended."""
        return (await self._ended()).status

    async def details(self) -> str:
        """What the service says about the status, once it has ended."""
        return (await self._ended()).text

    async def wait_for_connection(self) -> None:
        """Returns when it has been sent; raises what ended it before."""
        while self._stream is None and self.outcome is None:
            await self._change()
        self._raise_if_failed()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._response().__await__()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._all()  # the call does not know it: so it ends as soon as nobody reads on

    async def read(self) -> Any:  # noqa: ANN401 - the method's response type
        """The next answer, or EOF; raises what ended the call."""
        message = await self._read()
        if message is grpc.aio.EOF:
            self._raise_if_failed()
        return message

    async def write(self, request: Any) -> None:  # noqa: ANN401 - the method's request type
        """Returns when the peer takes more; raises what ended the call before it was sent."""
        payload = self.method.serialize(request)
        while self._stream is None and self.outcome is None:
            await self._change()
        stream = self._stream
        if self.outcome is not None or self._wrote_all or stream is None:
            self._raise_if_failed()
            raise asyncio.InvalidStateError("RPC already finished.")
        if self._is_too_large(payload):
            self._raise_if_failed()
        stream.write(payload)
        while not self.done() and stream.waits:
            await self._change()

    # For calls whose every message counts: without a task that is woken for each.

    def listen(self, listener: Callable[[Any], None]) -> None:
        """Calls it with each response, at once; `read` waits for their end. A fault in it ends the call."""
        self._listener = listener

    def write_now(self, request: Any) -> bool:  # noqa: ANN401 - the method's request type
        """As `write`, at once; False when that would wait, or fail: then nothing is written."""
        stream = self._stream
        if stream is None or self.outcome is not None or self._wrote_all or stream.waits:
            return False
        payload = self.method.serialize(request)
        if len(payload) > LARGEST_MESSAGE:
            return False
        stream.write(payload)
        return True

    async def done_writing(self) -> None:
        """Says that there are no more requests."""
        while self._stream is None and self.outcome is None:
            await self._change()
        if not self._wrote_all:
            self._wrote_all = True
            self._no_more()

    # -------------------------------------------------------------- inside

    def _is_too_large(self, message: bytes) -> bool:
        """No service would take it: it ends the call."""
        if too_large := len(message) > LARGEST_MESSAGE:
            text = f"a request of {len(message)} octets to {self.method.path}; {LARGEST_MESSAGE} are sent at most"
            self._end(Outcome(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        return too_large

    def _no_more(self) -> None:
        if self._stream and self.outcome is None:
            self._stream.end([])

    def _late(self) -> None:
        self._end(_LATE)

    def _end(self, outcome: Outcome) -> bool:
        if self.outcome is not None:
            return False
        if self._stream:
            self._stream.reset(ErrorCode.CANCEL)
        self.finish(outcome)
        return True

    async def _poll(self, requests: AsyncIterable[Any] | Iterable[Any]) -> None:
        try:
            async for request in _each(requests):
                await self.write(request)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            return  # the call has ended
        except Exception as fault:  # noqa: BLE001 - whoever waits for an answer hears it
            self._end(Outcome(grpc.StatusCode.UNKNOWN, f"what was asked could not be said: {type(fault).__name__}"))
            return
        await self.done_writing()

    async def _response(self) -> Any:  # noqa: ANN401 - the method's response type
        outcome = await self._ended()
        if self._unread.messages and outcome.status is grpc.StatusCode.OK:
            return self.method.deserialize(self._unread.first())  # it stays: a call may be awaited again
        self._raise_if_failed()
        raise _error(Outcome(grpc.StatusCode.INTERNAL, "a call without an answer"))

    async def _all(self) -> AsyncIterator[Any]:
        try:
            while (message := await self._read()) is not grpc.aio.EOF:
                yield message
        finally:
            self.cancel()  # nobody reads on
        self._raise_if_failed()

    async def _read(self) -> Any:  # noqa: ANN401 - the method's response type, or EOF
        while not self._unread.messages:
            if self.outcome is not None:
                return grpc.aio.EOF
            await self._change()
        return self.method.deserialize(self._unread.take())

    async def _ended(self) -> Outcome:
        while self.outcome is None:
            await self._change()
        return self.outcome

    async def _change(self) -> None:
        """A task that is cancelled while it waits cancels the call."""
        try:
            await self._waiters.change()
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _raise_if_failed(self) -> None:
        if self.outcome is _CANCELLED:
            raise asyncio.CancelledError
        if self.outcome is not None and self.outcome.status is not grpc.StatusCode.OK:
            raise _error(self.outcome)


async def _each(requests: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Any]:
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request


def _error(outcome: Outcome) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(outcome.status, nothing, grpc.aio.Metadata(*outcome.metadata), outcome.text)
