"""A channel to a service, as grpc.aio has it: calls on one connection, which is made anew when it broke."""

from __future__ import annotations

import asyncio
import random
from functools import partial, partialmethod
from typing import Self

import grpc

from services.common.streams.address import Address, all_of
from services.common.streams.channel_end import ChannelEnd
from services.common.streams.client_call import ClientCall
from services.common.streams.endpoint import Doubt
from services.common.streams.grpc_fields import Metadata, Outcome
from services.common.streams.method import Deserialize, Method, Serialize
from services.common.streams.race import first_of

_CONNECT_SECONDS = 5.0
_DIAL_SECONDS = 1.0  # a kernel accepts for a busy peer; one that was away is knocked at again by ours ever more rarely
_NEXT_SECONDS = 0.25  # without an answer, after which the next address of a name is tried as well
_BACKOFF = (0.05, 0.25)  # seconds: clients wait for a peer that restarts


class Channel:
    """Connects at its first use, and again whenever the connection broke and there is a call."""

    def __init__(self, address: str, metadata: Metadata = (), doubt: Doubt | None = None) -> None:
        """`address` is a gRPC target; `metadata` goes with each call; `doubt`: when the peer is given up."""
        self.address = address
        self._metadata = metadata
        self._doubt = doubt
        self._end: ChannelEnd | None = None
        self._leaving: dict[ChannelEnd, None] = {}  # they take no more calls
        self._waiting: dict[ClientCall, None] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._failing = False
        self._in_vain = False  # the last connection took no call
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Takes no more calls, and cancels those under way after `grace` seconds."""
        self._closed = True
        if grace and (calls := self._under_way()):
            await asyncio.wait([asyncio.ensure_future(call.code()) for call in calls], timeout=grace)
        if self._connecting:
            self._connecting.cancel()
        for call in self._under_way():
            call.cancel()
        for end in self._ends():
            end.close()

    def get_state(self) -> grpc.ChannelConnectivity:
        """READY while there is a connection."""
        return grpc.ChannelConnectivity.READY if self._end else grpc.ChannelConnectivity.IDLE

    def _ends(self) -> list[ChannelEnd]:
        return [*self._leaving, *([self._end] if self._end else ())]

    def _under_way(self) -> list[ClientCall]:
        return [*self._waiting, *(call for end in self._ends() for call in end.calls.values())]

    # -------------------------------------------------------------- what generated code calls

    def _method(
        self,
        path: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool = False,
        *,
        asks_many: bool,
    ) -> Method:
        return Method(self, path, request_serializer, response_deserializer, asks_many=asks_many)

    unary_unary = unary_stream = partialmethod(_method, asks_many=False)
    stream_unary = stream_stream = partialmethod(_method, asks_many=True)

    # -------------------------------------------------------------- calls

    def begin(self, call: ClientCall) -> None:
        """Sends a call now, or as soon as it can be."""
        if self._closed:
            call.finish(Outcome(grpc.StatusCode.UNAVAILABLE, "the channel is closed"))
        elif self._end and self._end.may_request and not self._waiting:
            self._end.send(call, self._metadata)
        elif self._failing and not call.waits:
            call.finish(Outcome(grpc.StatusCode.UNAVAILABLE, f"no connection to {self.address} at the moment"))
        else:
            self._waiting[call] = None
            self._go_on()

    def forget(self, call: ClientCall) -> None:
        """It has ended, perhaps before it was sent; another one may have its place."""
        self._waiting.pop(call, None)
        if self._waiting and self._end:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        while self._waiting and self._end and self._end.may_request:
            call = next(iter(self._waiting))
            del self._waiting[call]
            self._end.send(call, self._metadata)
        if self._end and (self._end.is_used_up or (self._waiting and self._end.calls)):
            # It is full: who waits gets another connection, since one call may wait for what another one says.
            self._end.part()
        if self._waiting and self._end is None and self._connecting is None and not self._closed:
            self._connecting = asyncio.get_running_loop().create_task(self._connect(), name="gRPC connects")

    # -------------------------------------------------------------- connections

    def leave(self, end: ChannelEnd) -> None:
        """The peer takes no more calls on this connection; those under way may end."""
        if self._end is end:
            self._end, self._in_vain = None, not end.is_used
            self._leaving[end] = None
            self._go_on()

    def has_room(self, end: ChannelEnd) -> None:
        """The peer takes more calls on this connection than it did."""
        if self._end is end:
            self._go_on()

    def broke(self, end: ChannelEnd) -> None:
        """The connection is no more; calls may have waited for room on it."""
        self._leaving.pop(end, None)
        if self._end is end:
            self._end, self._in_vain = None, not end.is_used
            self._go_on()

    async def _connect(self) -> None:
        try:
            if self._in_vain:  # it let nobody call (SETTINGS_MAX_CONCURRENT_STREAMS 0), and the next may do as much
                await _pause()
            while self._waiting and self._end is None:
                try:
                    end = await self._connected()
                    if end.is_over:  # it answered and was lost, or left, in the same turn
                        raise ConnectionError("the peer closed the connection")
                    self._end = end
                except (OSError, ValueError) as failure:  # ValueError: of a name that cannot be one
                    self._failing = True
                    self._fail_fast(str(failure) or "no answer in time")
                    await _pause()
        finally:
            self._failing = False
            self._connecting = None
        self._go_on()

    async def _connected(self) -> ChannelEnd:
        async with asyncio.timeout(_CONNECT_SECONDS):
            ways = [partial(self._connected_to, address) for address in await all_of(self.address)]
            return await first_of(ways, _NEXT_SECONDS, ChannelEnd.close)

    async def _connected_to(self, address: Address) -> ChannelEnd:
        end = ChannelEnd(self, self._doubt)
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                await address.connect(asyncio.get_running_loop(), lambda: end)
            await end.answered
        except BaseException:
            end.close()
            raise
        return end

    def _fail_fast(self, reason: str) -> None:
        text = f"failed to connect to {self.address}: {reason}"
        for call in [call for call in self._waiting if not call.waits]:
            call.finish(Outcome(grpc.StatusCode.UNAVAILABLE, text))


async def _pause() -> None:
    await asyncio.sleep(random.uniform(*_BACKOFF))  # noqa: S311 - so that not all come at once
