"""gRPC servers over the in-memory network, as grpc.aio has them: what generated servicers use of them."""

from __future__ import annotations

import asyncio
import inspect
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any, NoReturn

import grpc

from services.common.streams.call_server import CallServer, Served
from tests.simulation.world.addresses import Network
from tests.simulation.world.ambush import ANSWERED, ASKED, RECEIVED
from tests.simulation.world.grpc_end import GrpcEnd
from tests.simulation.world.processes import PROCESS
from tests.simulation.world.transports import SimTransport

EOF_MESSAGE = grpc.aio.EOF
Codes = grpc.StatusCode


class _Aborted(grpc.aio.AbortError):
    def __init__(self, code: grpc.StatusCode, details: str, trailing: Any) -> None:
        super().__init__(details)
        self.status = (code, details, trailing)


class _Details(grpc.HandlerCallDetails):  # type: ignore[misc]
    def __init__(self, method: str, metadata: Any) -> None:
        self.method = method
        self.invocation_metadata = metadata


class Server:
    """As grpc.aio.Server."""

    def __init__(self, network: Network, address: str, interceptors: Iterable[Any]) -> None:
        self._network = network
        self._address = address
        self._interceptors = list(interceptors)
        self._known: dict[str, Any] = {}  # what serves each method, as the interceptors left it
        self._handlers: list[Any] = []
        self._listener: GrpcListener | None = None
        self._port = 0

    def add_generic_rpc_handlers(self, handlers: Iterable[Any]) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """The same methods once more."""

    async def start(self) -> None:
        """Raises OSError when the port is taken."""
        self._port = int(self._address.rpartition(":")[2])
        self._listener = GrpcListener(self._network, self, self._address)
        self._network.listen(self._port, self._listener)

    async def stop(self, grace: float | None) -> None:
        """Refuses new calls, ends those under way after `grace`."""
        listener = self._listener
        if listener is None:
            return
        self._network.close(self._port, listener)
        for end in list(listener.ends):
            end.send("away", 0)
        tasks = [call.task for end in listener.ends for call in end.calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace or 0)
        for end in list(listener.ends):
            end.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def handler_of(self, method: str, metadata: Any) -> Any:
        """The handler of a method; None: none. No interceptor looks at more than the method: nothing is traced here."""
        if method not in self._known:
            self._known[method] = await self._intercepted(_Details(method, metadata), 0)
        return self._known[method]

    async def _intercepted(self, details: _Details, number: int) -> Any:
        if number == len(self._interceptors):
            return next((found for each in self._handlers if (found := each.service(details)) is not None), None)

        async def go_on(details: Any) -> Any:
            return await self._intercepted(details, number + 1)

        return await self._interceptors[number].intercept_service(go_on, details)


class GrpcListener:
    """Accepts connections of channels; bytes of HTTP/2 are answered that there is no such method."""

    def __init__(self, network: Network, server: Server, address: str) -> None:
        self.process = PROCESS.get()
        self.server = server
        self.ends: dict[ServerEnd, None] = {}
        self._address = address
        self._network = network

    def accept(self, transport: SimTransport) -> None:
        """A client opens a stream, or only checks whether the port is open."""
        transport.begin(Served(CallServer(self._address)))


class ServerEnd(GrpcEnd):
    """The server's end of a connection, and the calls on it."""

    def __init__(self, network: Network, listener: GrpcListener) -> None:
        super().__init__(listener.process, network)
        self.calls: dict[int, ServerCall] = {}
        self.loop = network.loop
        self.ambushes = network.ambushes
        self._listener = listener
        listener.ends[self] = None

    def _take(self, kind: str, *item: Any) -> None:
        if kind == "call":
            self._call(*item)
        elif call := self.calls.get(item[0]):
            if kind == "message":
                self.loop.note(self.process.number, item[0], zlib.crc32(item[1]))
                call.received(item[1])
            elif kind == "close":
                call.received(None)
            else:
                call.end()

    def _call(self, number: int, method: str, metadata: Any, payload: bytes | None) -> None:
        self.loop.note(self.process.number, number, zlib.crc32(payload or b""), len(method))
        call = self.calls[number] = ServerCall(self, number, self._listener.server, method, metadata)
        if payload is not None:
            call.received(payload)

    def _end(self, failure: Exception | None) -> None:
        self._listener.ends.pop(self, None)
        super()._end(failure)
        for call in list(self.calls.values()):
            call.end()


class ServerCall:
    """A call, and what its servicer knows as the context."""

    def __init__(self, end: ServerEnd, number: int, server: Server, method: str, metadata: Any) -> None:
        self._end = end
        self._number = number
        self._server = server
        self._method = method
        self._handler: Any = None  # until it is found
        self._metadata = metadata
        self._requests: deque[bytes | None] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._code, self._details = Codes.OK, ""
        self.task = end.loop.create_task(self._run(), name="gRPC call")

    # -------------------------------------------------------------- the connection says

    def received(self, payload: bytes | None) -> None:
        """None: no more."""
        self._requests.append(payload)
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """The caller wants no answer any more."""
        self._end.calls.pop(self._number, None)
        self.task.cancel()

    # -------------------------------------------------------------- grpc.aio.ServicerContext

    def invocation_metadata(self) -> Any:
        return self._metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    async def read(self) -> Any:
        """The next request, or EOF."""
        while not self._requests:
            self._waiter = self._end.loop.create_future()
            await self._waiter
        if self._requests[0] is None:
            return EOF_MESSAGE
        if self._handler.request_streaming:
            await self._end.ambushes.meet(self._method, RECEIVED)
        return self._handler.request_deserializer(self._requests.popleft())

    async def write(self, response: Any) -> None:
        await self._end.ambushes.meet(self._method, ANSWERED)
        self._end.send("message", self._number, self._handler.response_serializer(response))

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        raise _Aborted(code, details, trailing_metadata)

    # -------------------------------------------------------------- inside

    async def _run(self) -> None:
        payload: bytes | None = None
        status: tuple[grpc.StatusCode, str, Any] = (Codes.OK, "", ())
        try:
            self._handler = await self._server.handler_of(self._method, self._metadata)
            if self._handler is None:
                await self.abort(Codes.UNIMPLEMENTED, "Method not found!")
            await self._end.ambushes.meet(self._method, ASKED)
            payload = await self._answer()
            await self._end.ambushes.meet(self._method, ANSWERED)
            status = (self._code, self._details, ())
        except _Aborted as aborted:
            status = aborted.status
        except asyncio.CancelledError:
            status = (Codes.CANCELLED, "", ())
        except Exception as failure:  # noqa: BLE001 - as grpc.aio does
            text = f"Unexpected {type(failure)}: {failure}"
            self._end.loop.call_exception_handler({"message": "a gRPC call failed", "exception": failure})
            status = (Codes.UNKNOWN, text, ())
        if self._end.calls.pop(self._number, None):
            self._end.send("end", self._number, *status, payload)

    async def _answer(self) -> bytes | None:
        handler = self._handler
        method = (
            (handler.stream_stream if handler.response_streaming else handler.stream_unary)
            if handler.request_streaming
            else (handler.unary_stream if handler.response_streaming else handler.unary_unary)
        )
        answer = method(self._all() if handler.request_streaming else await self.read(), self)
        if inspect.isasyncgen(answer):
            async for response in answer:
                await self.write(response)
            return None
        response = await answer
        return None if response is None else handler.response_serializer(response)

    async def _all(self) -> AsyncIterator[Any]:
        while (request := await self.read()) is not EOF_MESSAGE:
            yield request
