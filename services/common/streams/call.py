"""A call to a servicer that was written for grpc.aio, on one of our streams: the server's end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, NoReturn, Protocol

import grpc
import grpc.aio
import structlog

from services.common.containment import REPORT
from services.common.runtime import Tasks
from services.common.streams.endpoint import LARGEST_MESSAGE
from services.common.streams.grpc_fields import Metadata, Outcome, trailers
from services.common.streams.stream import Stream
from services.common.streams.unread import Unread
from services.common.streams.waiters import Waiters

log = structlog.get_logger()

_TURN = 100  # messages
_LITTLE = 16 << 10  # octets: of larger ones too much would be kept until the end of the turn
_GIVEN_UP = trailers(grpc.StatusCode.UNAVAILABLE, "the service gave the call up")
_KINDS = {False: "unary", True: "stream"}


class Called(Protocol):
    """Which method, and what came with the call."""

    method: str
    invocation_metadata: Metadata


class Aborted(grpc.aio.AbortError):
    """The servicer ended the call with another status than OK."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.text)
        self.outcome = outcome


class Call:
    """Listens to the stream, and is the servicer's context."""

    def __init__(
        self,
        stream: Stream,
        find: Callable[[], Awaitable[Any]],
        called: Called,
        tasks: Tasks,
        *,
        asks_many: bool,
        largest: int,
    ) -> None:
        """`find` gives the grpc.RpcMethodHandler over coroutines or asynchronous generators, or None.

        `asks_many`: it takes a stream of requests; each may have `largest` octets.
        """
        self._stream = stream
        self._find = find
        self._called = called
        self._handler: Any = None  # until it is found
        self._asks_many = asks_many
        self._largest = largest
        self._heard = False
        self._said = 0  # messages
        self._requests = Unread(stream)
        self._waiters = Waiters()
        self._no_more = False
        self._listener: Callable[[Any], None] | None = None
        self._task = tasks.start(self._run(), "gRPC call")

    # -------------------------------------------------------------- the stream says

    def received(self, message: bytes) -> None:
        if self._heard and not self._asks_many:
            self._refuse(grpc.StatusCode.INTERNAL, "a second request, of a call that has one")
        elif len(message) > self._largest:
            self._refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, f"a request has {self._largest} octets at most")
        elif self._listener:
            self._hand_over(message)
        else:
            self._heard = True
            self._requests.add(message)
            if self._waiters:
                self._waiters.wake()

    def no_more(self) -> None:
        """The client sends no more requests."""
        self._no_more = True
        if self._waiters:
            self._waiters.wake()

    def writable(self) -> None:
        self._waiters.wake()

    def ended(self, _reason: str) -> None:
        self._task.cancel()

    # -------------------------------------------------------------- the servicer says

    def invocation_metadata(self) -> Metadata:
        """As grpc.aio.ServicerContext."""
        return self._called.invocation_metadata

    def cancelled(self) -> bool:
        """As grpc.aio.ServicerContext: whether the client wants no answer any more."""
        return self._stream.is_over

    async def read(self) -> Any:  # noqa: ANN401 - the method's request type
        """As grpc.aio.ServicerContext: the next request, or EOF."""
        while not self._requests.messages:
            if self._no_more:
                return grpc.aio.EOF
            await self._waiters.change()
        return self._parsed(self._requests.take())

    async def write(self, response: Any) -> None:  # noqa: ANN401 - the method's response type
        """As grpc.aio.ServicerContext: returns when the peer takes more."""
        message = self._said_as(response)
        if len(message) <= _LITTLE:
            self._stream.gather()
        self._stream.write(message)
        self._said += 1
        if not self._said % _TURN:
            await asyncio.sleep(0)  # who always has more to say lets others go on
        while self._stream.waits:
            await self._waiters.change()

    # For calls whose every message counts: without a task that is woken for each.

    def listen(self, listener: Callable[[Any], None], *read: Any) -> None:  # noqa: ANN401 - the method's request type
        """Calls it with what was `read`, then with each request, at once; `read` waits for their end from now on.

        A fault in it ends the call. None waits unread by then: it is for the listener alone to hold the stream.
        """
        self._listener = listener
        waiting = []
        while self._requests:
            waiting.append(self._requests.take())
        for request in read:
            listener(request)
        for message in waiting:
            self._hand_over(message)

    def say(self, response: Any) -> None:  # noqa: ANN401 - the method's response type
        """As `write`, of what is so little that nobody has to wait until the peer takes it."""
        self._stream.write(self._said_as(response))

    def hold(self, *, held: bool) -> None:
        """As Stream.hold."""
        self._stream.hold(held=held)

    def _hand_over(self, message: bytes) -> None:
        assert self._listener
        try:
            request = self._parsed(message)
        except Aborted as aborted:
            self._refuse(aborted.outcome.status, aborted.outcome.text)
        else:
            self._listener(request)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[tuple[str, str]] = ()
    ) -> NoReturn:
        """As grpc.aio.ServicerContext."""
        raise Aborted(Outcome(code, details, tuple(trailing_metadata)))

    def _refuse(self, status: grpc.StatusCode, text: str) -> None:
        self._task.cancel()
        self._stream.end(trailers(status, text))

    # -------------------------------------------------------------- from request to answer

    async def _run(self) -> None:
        outcome, last = Outcome(grpc.StatusCode.OK, ""), None
        try:
            last = await self._answer()
        except Aborted as aborted:
            outcome = aborted.outcome
        except Exception as failure:
            log.exception("a gRPC call failed", do=REPORT)
            outcome = Outcome(grpc.StatusCode.UNKNOWN, type(failure).__name__)
        except asyncio.CancelledError:
            self._stream.end(_GIVEN_UP)  # something it waited for was cancelled, if the stream is not over
            raise
        self._stream.gather()  # a change that is answered is news to those who watch, perhaps on the same connection
        if last is None:
            self._stream.end(trailers(*outcome))
        else:
            self._stream.finish(last, trailers(*outcome))

    async def _answer(self) -> bytes | None:
        """Gives the last message, if the method has one answer and has not written it itself."""
        handler = self._handler = await self._find()
        if handler is None:
            await self.abort(grpc.StatusCode.UNIMPLEMENTED, "there is no such method")
        kind = f"{_KINDS[handler.request_streaming]}_{_KINDS[handler.response_streaming]}"
        answer = getattr(handler, kind)(self._all() if handler.request_streaming else await self._one(), self)
        if inspect.isasyncgen(answer):
            async with aclosing(answer):
                async for response in answer:
                    await self.write(response)
            return None
        response = await answer
        return None if response is None else self._said_as(response)

    async def _one(self) -> Any:  # noqa: ANN401 - the method's request type
        request = await self.read()
        if request is grpc.aio.EOF:
            await self.abort(grpc.StatusCode.INTERNAL, "a call without a request")
        return request

    async def _all(self) -> AsyncIterator[Any]:
        while (request := await self.read()) is not grpc.aio.EOF:
            yield request

    def _said_as(self, response: Any) -> bytes:  # noqa: ANN401 - the method's response type
        """Serialized. No client of ours would take what is too large, and would not know whose fault it is."""
        serialize = self._handler.response_serializer
        message = bytes(serialize(response) if serialize else response)
        if len(message) > LARGEST_MESSAGE:
            text = f"an answer of {len(message)} octets to {self._called.method}; {LARGEST_MESSAGE} are sent at most"
            log.error("an answer is too large to be sent", method=self._called.method, octets=len(message), do=REPORT)
            raise Aborted(Outcome(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        return message

    def _parsed(self, message: bytes) -> Any:  # noqa: ANN401 - the method's request type
        deserialize = self._handler.request_deserializer
        try:
            return deserialize(message) if deserialize else message
        except Exception:  # noqa: BLE001 - the peer sent what the deserializer rejects
            raise Aborted(Outcome(grpc.StatusCode.INTERNAL, "the request cannot be read")) from None
