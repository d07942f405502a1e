"""A gRPC server on the loop itself, as grpc.aio's: servicers are added to it, and interceptors see every call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import grpc

from services.common.few_lines import FewLines
from services.common.files import files
from services.common.http2 import events as e
from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ErrorCode
from services.common.http2.messages import ToSend
from services.common.runtime import Tasks
from services.common.secret import REFUSAL, fields_for, is_open, is_said
from services.common.streams.address import Address
from services.common.streams.call import Call
from services.common.streams.endpoint import LARGEST_MESSAGE, Doubt, Endpoint
from services.common.streams.grpc_fields import NOT_A_CALL, RESPONSE, Metadata, called, trailers
from services.common.streams.newcomers import CALLS, SECONDS, Newcomers, most_of
from services.common.streams.stream import Stream, StreamListener

_LARGEST_OPEN = 4 << 10  # octets of a request that needs no secret: it only has the name of a service
_DO = "if it is of this stack, give it that file; else keep it from the port"


Accept = Callable[[Stream], StreamListener]
"""Makes the listener of a stream to a method that no servicer has."""


class CallServer:
    """Whoever makes it adds servicers, then calls `start`; callers over the network have to say the stack's secret."""

    def __init__(
        self, address: str, interceptors: Sequence[grpc.aio.ServerInterceptor] = (), doubt: Doubt | None = None
    ) -> None:
        """`address` is the gRPC target to listen on; `doubt`: when a client is given up."""
        self.address = address
        self.doubt = doubt
        self.tasks = Tasks()
        self.few = FewLines()  # limits the log lines that peers can cause
        self.streams: dict[str, Accept] = {}
        self.newcomers: Newcomers | None = None
        """None where callers need no secret."""
        self._interceptors = interceptors
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._found: dict[str, Any] = {}  # by method, of those that there are
        self._endpoints: dict[Served, None] = {}
        self._deserted = asyncio.Event()  # set while no client is connected
        self._deserted.set()
        self._server: asyncio.AbstractServer | None = None
        self.stops = False

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """As grpc.aio.Server: what generated code calls to add a servicer."""
        self._handlers += handlers
        self._found.clear()

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """As grpc.aio.Server; does nothing, as `add_generic_rpc_handlers` has the same methods."""

    async def start(self) -> None:
        """Binds and accepts calls; raises OSError when the address is taken, CannotStart without a secret to be had."""
        address = Address.parse(self.address)
        self.newcomers = Newcomers(most_of(files())) if fields_for(self.address) else None
        self._server = await address.listen(asyncio.get_running_loop(), lambda: Served(self))

    async def stop(self, grace: float | None = None) -> None:
        """Refuses new calls, waits `grace` seconds for those under way, then ends them."""
        self.stops = True
        if self._server:
            self._server.close()
            Address.parse(self.address).remove()  # now: later it may be a successor's
        for endpoint in list(self._endpoints):
            endpoint.shut_down()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace or 0):
                await self._deserted.wait()
        for endpoint in list(self._endpoints):
            endpoint.close("the service stops")
        await self.tasks.stop()

    # -------------------------------------------------------------- connections say

    async def handler_of(self, details: grpc.HandlerCallDetails, number: int = 0) -> Any | None:  # noqa: ANN401 - generic in its stubs only
        """The handler of a method, as the interceptors from this one on leave it."""
        if number < len(self._interceptors):
            return await self._interceptors[number].intercept_service(
                lambda its: self.handler_of(its, number + 1), details
            )
        return self.servicer_of(details)

    def servicer_of(self, details: grpc.HandlerCallDetails) -> Any | None:  # noqa: ANN401 - as above
        """The handler of a method, as its servicer has it."""
        found = self._found.get(details.method)
        if found is None:
            found = next((found for each in self._handlers if (found := each.service(details)) is not None), None)
            if found is not None:
                self._found[details.method] = found
        return found

    def came(self, endpoint: Served) -> None:
        self._endpoints[endpoint] = None
        self._deserted.clear()

    def left(self, endpoint: Served) -> None:
        self._endpoints.pop(endpoint, None)
        if not self._endpoints:
            self._deserted.set()


class Details(grpc.HandlerCallDetails):
    """What an interceptor knows of a call."""

    def __init__(self, method: str, metadata: e.Fields) -> None:
        self.method = method
        self.invocation_metadata: Metadata = tuple(metadata)


class Served(Endpoint):
    """A client's connection."""

    def __init__(self, server: CallServer) -> None:
        super().__init__(
            Http2Connection(is_client=False, largest_message=LARGEST_MESSAGE), server.address, server.doubt
        )
        self._server = server
        self._is_local = server.address.startswith("unix:")  # its callers need no secret
        self._parting = False
        self._newcomers: Newcomers | None = None  # while it is one of them
        self._late: asyncio.TimerHandle | None = None
        self._unanswered: set[int] = set()  # calls with one answer, with which its header fields go

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.came(self)
        super().connection_made(transport)
        if (newcomers := self._server.newcomers) is not None:
            self._newcomers = newcomers
            self._late = asyncio.get_running_loop().call_later(SECONDS, self._is_late)
            peer = transport.get_extra_info("peername")  # None of one that has left by now
            newcomers.come(self, peer[0] if peer else "")
        if self._server.stops:
            self.shut_down()  # it was accepted before that

    def connection_lost(self, failure: Exception | None) -> None:
        super().connection_lost(failure)
        self._server.left(self)
        self._is_new_no_more()

    def buffer_updated(self, count: int) -> None:
        super().buffer_updated(count)
        if self._newcomers:
            self._newcomers.hold(self, self._connection.held)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._newcomers:  # what it has asked for is little, and it does not read that
            self.cut_off()

    # -------------------------------------------------------------- until it has said the secret

    def cut_off(self) -> None:
        """As Newcomer.cut_off: what it holds is let go now."""
        self._is_new_no_more()
        self._end_all("its caller has not said the secret")
        if self._transport:
            self._transport.abort()

    def _is_late(self) -> None:
        if self._newcomers:
            self._newcomers.late(self)
        self._is_new_no_more()
        self._connection.go_away(text=REFUSAL)
        self.close("its caller has not said the secret")

    def _is_new_no_more(self) -> None:
        if self._newcomers and self._late:
            self._newcomers.leave(self)
            self._late.cancel()
        self._newcomers = self._late = None

    # -------------------------------------------------------------- calls

    def warn(self, event: str, **about: object) -> None:
        """Limits the lines: any process may connect."""
        self._server.few.say(super().warn, event, **about)

    def shut_down(self) -> None:
        """Accepts no more calls; closes the connection when the last call has ended."""
        self._parting = True
        self._connection.go_away()
        self.flush()
        self._part()

    def headers(self, headers: e.Headers) -> None:
        number, method = headers.stream, called(headers.fields)
        stream = Stream(self, number)
        if (said := self._is_local or is_said(headers.fields, self.address)) and self._newcomers:
            self._is_new_no_more()
        if number in self._streams:
            pass  # trailers of a client; gRPC's clients send none
        elif method is None:
            self._connection.end(number, NOT_A_CALL)
        elif not (said or is_open(method)):
            self.warn("a call was refused", method=method, reason=REFUSAL, do=_DO)
            self._refuse(number, grpc.StatusCode.UNAUTHENTICATED, REFUSAL)
        elif self._newcomers and len(self._streams) >= CALLS:
            self._refuse(number, grpc.StatusCode.RESOURCE_EXHAUSTED, f"{CALLS} calls at a time without the secret")
        elif accept := self._server.streams.get(method):
            self._connection.respond(number, RESPONSE)
            self._accept(stream, accept)
        elif handler := self._server.servicer_of(details := Details(method, headers.fields)):
            self._unanswered.add(number)
            if handler.request_streaming or handler.response_streaming:
                self._respond(number)
            self._call(stream, details, asks_many=handler.request_streaming)
        else:
            self._refuse(number, grpc.StatusCode.UNIMPLEMENTED, f"no method {method}")
        if headers.ended:
            self.peer_ended(e.Ended(number))

    def _respond(self, number: int) -> None:
        if number in self._unanswered:
            self._unanswered.discard(number)
            self._connection.respond(number, RESPONSE)

    def _refuse(self, number: int, status: grpc.StatusCode, text: str) -> None:
        self._connection.end(number, [*RESPONSE, *trailers(status, text)])

    def _accept(self, stream: Stream, accept: Accept) -> None:
        try:
            self.begin(stream, accept(stream))
        except Exception as failure:  # noqa: BLE001 - `failed` logs it
            self.failed(stream.number, failure)

    def _call(self, stream: Stream, details: Details, *, asks_many: bool) -> None:
        largest = LARGEST_MESSAGE
        if is_open(details.method):
            largest = _LARGEST_OPEN
            self._connection.limit(stream.number, largest)
        find = partial(self._server.handler_of, details)
        call = Call(stream, find, details, self._server.tasks, asks_many=asks_many, largest=largest)
        self.begin(stream, call)

    def peer_ended(self, ended: e.Ended) -> None:
        found = self._streams.get(ended.stream)
        if found and isinstance(found[1], Call):
            found[1].no_more()  # its answer is still to come
        elif found:
            self._connection.end(ended.stream, trailers())
            self.over(ended.stream, "")

    def over(self, number: int, reason: str) -> None:
        self._unanswered.discard(number)
        super().over(number, reason)
        self._part()

    def write(self, number: int, message: ToSend) -> None:
        self._respond(number)
        super().write(number, message)

    def finish(self, number: int, message: ToSend, trailers: e.Fields) -> None:
        if number not in self._unanswered:
            super().finish(number, message, trailers)
            return
        self._unanswered.discard(number)
        self._connection.answer(number, RESPONSE, message, trailers)
        self._behind.pop(number, None)
        self._streams.pop(number, None)
        self.flush()

    def end(self, number: int, trailers: e.Fields) -> None:
        if number in self._unanswered:
            self._unanswered.discard(number)
            trailers = [*RESPONSE, *trailers]
        super().end(number, trailers)
        self._behind.pop(number, None)
        self._streams.pop(number, None)
        if self._parting:
            self._part()

    def reset(self, number: int, code: ErrorCode) -> None:
        self._unanswered.discard(number)
        super().reset(number, code)
        self._part()

    def _part(self) -> None:
        if self._parting and self.idle and not self.full:
            self.close()

    def flush(self) -> None:
        super().flush()
        if self._parting:
            self._part()  # what was waited for may be written now
