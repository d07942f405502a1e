"""A connection to a service that notices when another process answers at its address.

Addresses are used again. When processes restart, mgmt may get the address that the store had, and a client that
connects too early stays connected to mgmt. A peer that does not know the method, or is another member than the one
meant, counts as unreachable: the connection to it is given up, and the address is looked up anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

import grpc
import grpc.aio

from services.common.clients.calls import result, stream
from services.common.clock import monotonic
from services.common.errors import BrokerError, Unavailable, WrongPeer
from services.common.grpc_channel import connect
from services.common.grpc_errors import from_rpc
from services.common.runtime import Tasks

S = TypeVar("S")
T = TypeVar("T")

_AGAIN = 0.1  # seconds
_DO = "see that it runs there, and is not held up by its disk or for want of processors"
_LINGER = 5.0  # for calls that the wrong peer did accept


class Peer(Generic[S]):
    """`stub` makes a client of generated code from a channel; created in a running loop."""

    def __init__(
        self, address: str, stub: Callable[[grpc.aio.Channel], S], *, bulk: bool = False, service: str = "the service"
    ) -> None:
        """`bulk` as `grpc_channel.connect` has it; `service` is for people."""
        self.address, self._service = address, service
        self._bulk = bulk
        self._make = stub
        self._tasks = Tasks()
        self._channel = connect(address, bulk=bulk)
        self.stub = stub(self._channel)

    @property
    def is_connected(self) -> bool:
        """Whether a process listens at the address, so that calls under way have reached it."""
        return bool(self._channel.get_state() is grpc.ChannelConnectivity.READY)

    async def close(self) -> None:
        """Ends all calls."""
        await self._channel.close()
        await self._tasks.stop()

    async def result(self, call: Callable[[S, float], Awaitable[T]], patience: float) -> T:
        """The reply to a call with a deadline. If a wrong peer answers, the call is made again, for `patience` seconds.

        Raises the BrokerError that the service answered with, or Unavailable, with a note of who did not answer.
        """
        until = monotonic() + patience
        while True:
            stub = self.stub
            try:
                return await result(call(stub, max(until - monotonic(), _AGAIN)))
            except WrongPeer as failure:
                self.judge(failure, stub)
                if monotonic() + _AGAIN >= until:
                    failure.add_note(f"{self._service} is to be at {self.address}: {_DO}")
                    raise
            except Unavailable as failure:
                if not failure.answered:
                    failure.add_note(f"{self._service} at {self.address} was asked: {_DO}")
                raise
            await asyncio.sleep(_AGAIN)

    async def stream(self, call: Callable[[S], AsyncIterable[T]]) -> AsyncIterator[T]:
        """The replies, one by one. Raises what `result` does, at once."""
        stub = self.stub
        try:
            async for message in stream(call(stub)):
                yield message
        except WrongPeer as failure:
            self.judge(failure, stub)
            raise

    def judge(self, failure: BrokerError | grpc.aio.AioRpcError, stub: S) -> BrokerError:
        """The BrokerError for a failure of a call by `stub`; gives the connection up when a wrong peer answered."""
        error = from_rpc(failure)
        if isinstance(error, WrongPeer) and stub is self.stub:
            former, self._channel = self._channel, connect(self.address, bulk=self._bulk)
            self.stub = self._make(self._channel)
            self._tasks.start(former.close(_LINGER), f"wrong peer at {self.address}")
        return error
