"""The writing end of the journal: one stream that stays open, and frames that are kept until they are on disk."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

import grpc.aio
import structlog

from services.common.clients.calls import unless_given_up
from services.common.clients.peer import Peer
from services.common.containment import contained
from services.common.errors import PreconditionFailed, Unavailable
from services.common.grpc_channel import MAX_FRAME
from services.common.remedies import STORE
from services.common.runtime import Tasks
from services.rpc.store_pb2 import AllocateOriginRequest, JournalAck, JournalFrame
from services.rpc.store_pb2_grpc import StoreStub

if TYPE_CHECKING:
    from services.common.streams.client_call import ClientCall
    from services.rpc.store_pb2_grpc import StoreAsyncStub

_RETRY_SECONDS = 0.1

log = structlog.get_logger()


class Journal:
    """Numbers frames and sends them in order, again after every break; the store writes each once."""

    def __init__(self, address: str, name: str) -> None:
        """`name` is for logs. Every journal is a writer of its own to the store."""
        self._peer: Peer[StoreAsyncStub] = Peer(address, StoreStub, bulk=True)
        self._name = name
        self._origin = 0
        self._sequence = 0
        self._waiting: dict[int, tuple[JournalFrame, asyncio.Future[JournalAck]]] = {}
        self._unsent: deque[JournalFrame] = deque()
        self._more = asyncio.Event()
        self._direct: ClientCall | None = None  # what frames go to at once, while none is before them
        self._tasks = Tasks()

    async def start(self) -> None:
        """Connects in the background, and again until `stop`."""
        self._tasks.start(self._run(), "journal")

    async def stop(self) -> None:
        """Ends the stream. Frames without an answer fail with Unavailable: they may be on disk or not."""
        await self._tasks.stop()
        await self._peer.close()
        waiting, self._waiting = self._waiting, {}
        for _, done in waiting.values():
            if not done.done():
                done.set_exception(Unavailable("the journal was closed before the store answered"))

    def append(self, frame: JournalFrame) -> asyncio.Future[JournalAck]:
        """Sends `frame`, whose sequence is set here; the caller may not change it any more.

        The future gives the answer when the frame is on disk (`fenced`: nothing of it was written), and raises
        PreconditionFailed when the store can make no sense of it.
        """
        self._sequence += 1
        frame.sequence = self._sequence
        done: asyncio.Future[JournalAck] = asyncio.get_running_loop().create_future()
        self._waiting[frame.sequence] = (frame, done)
        if not self._goes_at_once(frame):
            self._direct = None
            self._unsent.append(frame)
            self._more.set()
        return done

    def _goes_at_once(self, frame: JournalFrame) -> bool:
        """A fault is the stream's, not the caller's: the frame has its number, and goes with the next stream."""
        if self._direct is None:
            return False
        try:
            return self._direct.write_now(frame)
        except Exception as fault:  # noqa: BLE001 - whatever it is, another stream is as good
            self._give_up(self._direct, fault)
            return False

    def _give_up(self, call: ClientCall, fault: Exception) -> None:
        """Ends a stream that cannot be written to any more: answers would not come, and nobody would know why."""
        contained("sending journal frames", fault, writer=self._name)
        call.cancel()

    async def _run(self) -> None:
        reported = False
        while True:
            stub = self._peer.stub
            try:
                await self._stream(stub)
            except grpc.aio.AioRpcError as failure:
                error = self._peer.judge(failure, stub)
                if not reported:
                    what = "journal interrupted, confirms wait"
                    log.warning(what, writer=self._name, reason=error.text, do=STORE)
                reported = True
            else:
                reported = False
            self._refuse_too_large()
            await asyncio.sleep(_RETRY_SECONDS)

    def _refuse_too_large(self) -> None:
        """Fails frames larger than a channel carries, which would be sent again for ever."""
        for sequence, (frame, done) in list(self._waiting.items()):
            if (size := frame.ByteSize()) > MAX_FRAME:
                del self._waiting[sequence]
                if not done.done():
                    done.set_exception(PreconditionFailed(f"a journal frame of {size} bytes; {MAX_FRAME} are taken"))

    async def _stream(self, stub: StoreAsyncStub) -> None:
        if not self._origin:
            request = AllocateOriginRequest(name=f"journal of {self._name}")
            with unless_given_up():
                self._origin = (await stub.AllocateOrigin(request, wait_for_ready=True)).origin
        # The store identifies a stream by its first frame, so no stream is opened until there is a frame to write.
        while not self._waiting:
            self._more.clear()
            await self._more.wait()
        call = cast("ClientCall", stub.Journal(wait_for_ready=True))
        call.listen(self._answer)
        self._unsent = deque(frame for frame, _ in self._waiting.values())
        self._unsent[0].origin = self._origin
        sender = asyncio.get_running_loop().create_task(self._send(call), name="journal sender")
        try:
            with unless_given_up():
                await call.read()  # the end
        finally:
            self._direct = None
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            call.cancel()

    async def _send(self, call: ClientCall) -> None:
        """Sends what has gathered; then frames go by themselves, until one would have to wait."""
        try:
            await self._send_all(call)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # the call has ended, and whoever reads it hears why
        except Exception as fault:  # noqa: BLE001 - as in `_goes_at_once`
            self._give_up(call, fault)

    async def _send_all(self, call: ClientCall) -> None:
        while True:
            while self._unsent:
                await call.write(self._unsent.popleft())
            self._direct = call
            self._more.clear()
            await self._more.wait()

    def _answer(self, ack: JournalAck) -> None:
        _, done = self._waiting.pop(ack.sequence)
        if done.done():
            return
        if ack.refused:
            done.set_exception(PreconditionFailed(ack.refused))
        else:
            done.set_result(ack)
