"""A member's stream of renewals: a request, its answer, the next request, for as long as the member lives.

A call for each would cost both processes half as much again, and renewals are most of what an idle stack does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc.aio

from services.common.clients.calls import unless_given_up
from services.common.clients.peer import Peer
from services.common.errors import Unavailable
from services.rpc import store_pb2 as pb

if TYPE_CHECKING:
    from services.rpc.store_pb2_grpc import StoreAsyncStub


class Renewals:
    """A request that ends without an answer ends its stream; the next request opens another, as does a parallel one."""

    def __init__(self, peer: Peer[StoreAsyncStub]) -> None:
        self._peer = peer
        self._call: Any = None  # grpc.aio types its calls by factory

    async def ask(self, request: pb.KeepAliveRequest, seconds: float) -> pb.KeepAliveReply:
        """Raises Unavailable when there is no answer within `seconds`, or the error that the store answers with."""
        stub = self._peer.stub
        if self._call is None or self._call.done():
            self._call = stub.KeepAlive(wait_for_ready=True)
        call, self._call = self._call, None
        try:
            # gRPC's own deadlines wake up threads of both processes long after the answer.
            async with asyncio.timeout(seconds):
                with unless_given_up():
                    await call.write(request)
                    reply = await call.read()
        except TimeoutError:
            raise Unavailable(f"the store did not answer within {seconds:.2g} s") from None
        except grpc.aio.AioRpcError as failure:
            raise self._peer.judge(failure, stub) from None
        except asyncio.InvalidStateError:
            raise Unavailable("the store is away") from None
        if not isinstance(reply, pb.KeepAliveReply):
            raise Unavailable("the store is about to stop")
        if self._call is None:
            self._call = call
        else:  # a parallel request left its stream already
            call.cancel()
        return reply
