"""gRPC channels over the in-memory network, as grpc.aio has them: what generated stubs and our clients use of them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any, Self

import grpc
from grpc._cython import cygrpc

from tests.simulation.world.addresses import Network
from tests.simulation.world.grpc_call import Call, Codes
from tests.simulation.world.grpc_end import GrpcEnd
from tests.simulation.world.grpc_server import GrpcListener, ServerEnd
from tests.simulation.world.network import Connection
from tests.simulation.world.processes import PROCESS

_CONNECT_SECONDS = 20.0
_BACKOFF = (0.05, 0.25)


class Channel:
    """To one address; connects when first used, and again whenever it broke."""

    def __init__(self, network: Network, address: str) -> None:
        self.network = network
        self.loop = network.loop
        self.process = PROCESS.get()
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        self._end: ClientEnd | None = None
        self._waiting: dict[Call, None] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._failing = False
        self._closed = False

    def unary_unary(self, method: str, *serializers: Any, **more: Any) -> Method:
        return Method(self, method, False, False, *serializers, **more)

    def unary_stream(self, method: str, *serializers: Any, **more: Any) -> Method:
        return Method(self, method, False, True, *serializers, **more)

    def stream_unary(self, method: str, *serializers: Any, **more: Any) -> Method:
        return Method(self, method, True, False, *serializers, **more)

    def stream_stream(self, method: str, *serializers: Any, **more: Any) -> Method:
        return Method(self, method, True, True, *serializers, **more)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Takes no more calls; those under way have `grace` seconds."""
        self._closed = True
        if grace and (calls := self._under_way()):
            await asyncio.wait([self.loop.create_task(call.code()) for call in calls], timeout=grace)
        if self._connecting:
            self._connecting.cancel()
        for call in self._under_way():
            call.cancel()
        end, self._end = self._end, None
        if end:
            end.close()

    def _under_way(self) -> list[Call]:
        return [*self._waiting, *(self._end.calls.values() if self._end else ())]

    def get_state(self) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY if self._end else grpc.ChannelConnectivity.IDLE

    def begin(self, call: Call) -> None:
        """Sends what begins a call, now or when there is a connection."""
        if self._closed:
            raise cygrpc.UsageError("Channel is closed.")
        if self._end:
            self._end.begin(call)
        elif self._failing and not call.waits:
            self.loop.soon(self.process, call.finish, Codes.UNAVAILABLE, "no connection at the moment")
        else:
            self._waiting[call] = None
            if self._connecting is None:
                self._connecting = self.loop.create_task(self._connect(), name="gRPC connects")

    def forget(self, call: Call) -> None:
        """It has ended before it was sent."""
        self._waiting.pop(call, None)

    def broke(self, end: ClientEnd) -> None:
        """The connection is no more."""
        if self._end is end:
            self._end = None

    async def _connect(self) -> None:
        try:
            while self._waiting:
                try:
                    async with asyncio.timeout(_CONNECT_SECONDS):
                        link, listener = await self.network.reach(self._host, self._port)
                except OSError as failure:
                    self._failing = True
                    self._fail_fast(str(failure))
                    await asyncio.sleep(_BACKOFF[0] + self.network.random.random() * (_BACKOFF[1] - _BACKOFF[0]))
                else:
                    self._failing = False
                    self._connected(link, listener)
                    return
        finally:
            self._failing = False
            self._connecting = None

    def _fail_fast(self, reason: str) -> None:
        for call in list(self._waiting):
            if not call.waits:
                call.finish(Codes.UNAVAILABLE, f"failed to connect to all addresses: {reason}")

    def _connected(self, link: Any, listener: Any) -> None:
        waiting, self._waiting = self._waiting, {}
        if not isinstance(listener, GrpcListener):
            for call in waiting:
                call.finish(Codes.UNIMPLEMENTED, "Method not found!")
            return
        near = ClientEnd(self)
        far = ServerEnd(self.network, listener)
        near.connection = far.connection = Connection(self.loop, link, (near, far))
        for end in (near, far):
            end.process.on_death[end.die] = None
        if far.process.dead:
            far.die()
        self._end = near
        for call in waiting:
            near.begin(call)


class ClientEnd(GrpcEnd):
    """The client's end of a connection, and the calls on it."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel.process, channel.network)
        self.calls: dict[int, Call] = {}
        self._channel = channel
        self._number = 0

    def begin(self, call: Call) -> None:
        self._number += 1
        call.number, call.end = self._number, self
        self.calls[call.number] = call
        call.started()

    def _take(self, kind: str, *item: Any) -> None:
        if kind == "away":
            self._channel.broke(self)
            return
        number, call = item[0], self.calls.get(item[0])
        if kind == "message":
            self._receive(number, call, item[1])
        elif call:
            _, code, details, trailing, payload = item
            if payload is not None:
                self._receive(number, call, payload)
            call.finish(code, details, trailing)

    def _receive(self, number: int, call: Call | None, payload: bytes) -> None:
        self._channel.loop.note(self.process.number, number, zlib.crc32(payload))
        if call:
            call.received(payload)

    def _end(self, failure: Exception | None) -> None:
        self._lost = True
        self._channel.broke(self)
        super()._end(failure)
        for call in list(self.calls.values()) if failure else ():
            call.finish(Codes.UNAVAILABLE, f"recvmsg: {failure}")


class Method:
    """What a stub calls."""

    def __init__(
        self, channel: Channel, method: str, asks_many: bool, answers_many: bool,
        request_serializer: Callable[[Any], bytes], response_deserializer: Callable[[bytes], Any],
        _registered_method: bool = False,
    ) -> None:  # fmt: skip
        self.channel = channel
        self.method = method
        self.asks_many = asks_many
        self.answers_many = answers_many
        self.serialize = request_serializer
        self.deserialize = response_deserializer

    def __call__(
        self, request: Any = None, *, timeout: float | None = None, metadata: Any = None,
        wait_for_ready: bool | None = None, credentials: Any = None, compression: Any = None,
    ) -> Call:  # fmt: skip
        return Call(self, request, timeout, metadata, bool(wait_for_ready))
