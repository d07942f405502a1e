"""A gRPC server on the loop itself, for streams that carry messages; with health checking and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import grpc

from services.common.few_lines import FewLines
from services.common.grpc_health import Health
from services.common.http2 import events as e
from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ErrorCode
from services.common.runtime import CannotStart, Tasks
from services.common.secret import REFUSAL, is_open, may_call
from services.common.streams.address import Address
from services.common.streams.call import Call
from services.common.streams.endpoint import LARGEST_MESSAGE, Endpoint
from services.common.streams.grpc_fields import NOT_A_CALL, RESPONSE, called, trailers
from services.common.streams.stream import Stream, StreamListener

_LARGEST_OPEN = 4 << 10  # octets of a request that needs no secret: it only has the name of a service

Accept = Callable[[Stream], StreamListener]


class StreamServer:
    """NOT_SERVING until `ready`. Streams go to the handlers of `add_stream`, other calls to gRPC's own servicers."""

    def __init__(self, address: str, services: Iterable[str]) -> None:
        """`address` is the gRPC target to listen on."""
        self.address = address
        self.tasks = Tasks()
        self.streams: dict[str, Accept] = {}
        self.few = FewLines()  # limits the log lines that peers can cause
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._endpoints: dict[_Served, None] = {}
        self._deserted = asyncio.Event()  # set while no client is connected
        self._deserted.set()
        self._server: asyncio.AbstractServer | None = None
        self._health = Health(services, self)

    def add_stream(self, method: str, accept: Accept) -> None:
        """`accept` makes the listener of each stream that is opened to `/package.Service/Method`."""
        self.streams[method] = accept

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """As grpc.aio.Server: what generated code calls to add a servicer."""
        self._handlers += handlers

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """As grpc.aio.Server; does nothing, as `add_generic_rpc_handlers` has the same methods."""

    def handler_of(self, method: str, metadata: e.Fields) -> Any | None:  # noqa: ANN401 - generic in its stubs only
        """The handler of a method that is not a stream of messages."""
        details = _Details(method, metadata)
        return next((found for each in self._handlers if (found := each.service(details)) is not None), None)

    async def listen(self) -> None:
        """Binds and accepts calls; raises CannotStart when the address is taken."""
        await self._health.say(serving=False)
        try:
            address = Address.parse(self.address)
            self._server = await address.listen(asyncio.get_running_loop(), lambda: _Served(self))
        except OSError as error:
            reason = "it is taken, or not an address of this machine"
            raise CannotStart(f"cannot listen on {self.address}: {reason}") from error

    async def ready(self) -> None:
        """From now on health checks answer SERVING."""
        await self._health.say(serving=True)

    async def stop(self, grace: float = 1.0) -> None:
        """Refuses new calls, waits `grace` seconds for those under way, then ends them."""
        await self._health.shut_down()
        if self._server:
            self._server.close()
        for endpoint in list(self._endpoints):
            endpoint.shut_down()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._deserted.wait()
        for endpoint in list(self._endpoints):
            endpoint.close("the service stops")
        await self.tasks.stop()
        if self._server:
            Address.parse(self.address).remove()

    def came(self, endpoint: _Served) -> None:
        self._endpoints[endpoint] = None
        self._deserted.clear()

    def left(self, endpoint: _Served) -> None:
        self._endpoints.pop(endpoint, None)
        if not self._endpoints:
            self._deserted.set()


class _Details(grpc.HandlerCallDetails):
    def __init__(self, method: str, metadata: e.Fields) -> None:
        self.method = method
        self.invocation_metadata = tuple(metadata)


class _Served(Endpoint):
    """A client's connection."""

    def __init__(self, server: StreamServer) -> None:
        super().__init__(Http2Connection(is_client=False, largest_message=LARGEST_MESSAGE), server.address)
        self._server = server
        self._parting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.came(self)
        super().connection_made(transport)

    def connection_lost(self, failure: Exception | None) -> None:
        super().connection_lost(failure)
        self._server.left(self)

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
        if number in self._streams:
            pass  # trailers of a client; gRPC's clients send none
        elif method is None:
            self._connection.end(number, NOT_A_CALL)
        elif not may_call(method, headers.fields, self.address):
            self._connection.end(number, [*RESPONSE, *trailers(grpc.StatusCode.UNAUTHENTICATED, REFUSAL)])
        elif accept := self._server.streams.get(method):
            self._connection.respond(number, RESPONSE)
            self._accept(stream, accept)
        elif handler := self._server.handler_of(method, headers.fields):
            self._connection.respond(number, RESPONSE)
            largest = _LARGEST_OPEN if is_open(method) else LARGEST_MESSAGE
            self._connection.limit(number, largest)
            self.begin(stream, Call(stream, handler, self._server.tasks, largest))
        else:
            self._connection.end(number, [*RESPONSE, *trailers(grpc.StatusCode.UNIMPLEMENTED, f"no method {method}")])
        if headers.ended:
            self.peer_ended(e.Ended(number))

    def _accept(self, stream: Stream, accept: Accept) -> None:
        try:
            self.begin(stream, accept(stream))
        except Exception as failure:  # noqa: BLE001 - `failed` logs it
            self.failed(stream.number, failure)

    def peer_ended(self, ended: e.Ended) -> None:
        found = self._streams.get(ended.stream)
        if found and isinstance(found[1], Call):
            found[1].no_more()  # its answer is still to come
        elif found:
            self._connection.end(ended.stream, trailers())
            self.over(ended.stream, "")

    def over(self, number: int, reason: str) -> None:
        super().over(number, reason)
        self._part()

    def end(self, number: int, trailers: e.Fields) -> None:
        super().end(number, trailers)
        self._streams.pop(number, None)
        self._part()

    def reset(self, number: int, code: ErrorCode) -> None:
        super().reset(number, code)
        self._part()

    def _part(self) -> None:
        if self._parting and self.idle:
            self.close()
