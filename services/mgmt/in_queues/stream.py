"""A stream to a queue process, as gateways have one, for as long as one piece of work takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import grpc.aio

from services.common.clients.calls import unless_given_up
from services.common.clients.partition_table import Owner
from services.common.errors import Unavailable
from services.common.grpc_channel import connect
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub

_PATIENCE: Final = 30.0  # seconds in which it answers
_REPLY, _PREPARED, _COMPLETED = "reply", "prepared", "completed"


class Awaited(NamedTuple):
    """What an answer is about."""

    kind: str
    number: int


class OwnerStream:
    """`async with` opens and closes it: what was taken by it, and not settled, is where it was then."""

    def __init__(self, owner: Owner, origin: int) -> None:
        self.owner = owner
        self._origin = origin
        self._requests = 0
        self._batches = 0
        self._waiting: dict[Awaited, asyncio.Future[Any]] = {}
        self._blocked = pb.Blocked()
        self._over = ""

    async def __aenter__(self) -> Self:
        self._channel = connect(self.owner.address)
        self._call = QueueStub(self._channel).Attach()
        self._reader = asyncio.get_running_loop().create_task(self._read(), name=f"stream to {self.owner.member}")
        hello = pb.Hello(origin=self._origin, name="mgmt", member=self.owner.member, number=1)
        try:
            await self._write(pb.LinkFrame(hello=hello))
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._channel.close()

    def is_full(self, queue_id: SlotId) -> bool:
        """Whether publishers to the queue have to wait for room in it."""
        return queue_id in self._blocked.queue_ids

    @property
    def has_no_room(self) -> bool:
        """Whether publishers to any of the process's queues have to wait."""
        return self._blocked.everywhere

    # -------------------------------------------------------------- what is asked; all raise Unavailable

    async def ask(self, **request: Any) -> pb.QueueReply:  # noqa: ANN401 - one field of the oneof
        """The reply to a request."""
        self._requests += 1
        asked = pb.QueueRequest(id=self._requests, term=self.owner.epoch, **request)
        answer = self._expect(_REPLY, self._requests)
        await self._write(pb.LinkFrame(requests=[asked]))
        reply: pb.QueueReply = await self._answered(answer)
        return reply

    async def prepare(
        self, transaction: int, batch: pb.PublishBatch | None, settle: pb.Settle | None, copied: pb.Copied | None
    ) -> pb.Prepared:
        """Whether it can carry out these parts of a transaction."""
        frame = pb.LinkFrame(settles=[settle] if settle else [])
        if batch:
            self._batches += 1
            batch.sequence = self._batches
            frame.publishes.append(batch.SerializeToString())
        frame.transactions.add(transaction=transaction, step=pb.TransactionStep.PREPARE, copied=copied)
        answer = self._expect(_PREPARED, transaction)
        await self._write(frame)
        prepared: pb.Prepared = await self._answered(answer)
        return prepared

    async def complete(self, transaction: int) -> bool:
        """Carries it out; False: it holds none such, and has asked the store for the decision, or will."""
        done, not_held = self._expect(_COMPLETED, transaction), self._expect(_PREPARED, transaction)
        await self._step(transaction, pb.TransactionStep.COMPLETE)
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.wait([done, not_held], return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise self._no_answer() from None
        if done.done() and done.exception():
            raise Unavailable(self._over)
        return done.done()

    async def abort(self, transaction: int) -> None:
        """Has it forget what it has prepared."""
        done = self._expect(_COMPLETED, transaction)
        await self._step(transaction, pb.TransactionStep.ABORT)
        await self._answered(done)

    async def _step(self, transaction: int, step: pb.TransactionStep.Step.ValueType) -> None:
        await self._write(pb.LinkFrame(transactions=[pb.TransactionStep(transaction=transaction, step=step)]))

    # -------------------------------------------------------------- the stream

    def _expect(self, kind: str, number: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda its: None if its.cancelled() else its.exception())  # it is not missed
        self._waiting[Awaited(kind, number)] = future
        if self._over:
            future.set_exception(Unavailable(self._over))
        return future

    async def _answered(self, answer: asyncio.Future[Any]) -> Any:  # noqa: ANN401 - each its own
        try:
            async with asyncio.timeout(_PATIENCE):
                return await answer
        except TimeoutError:
            raise self._no_answer() from None

    def _no_answer(self) -> Unavailable:
        return Unavailable(f"the queue process {self.owner.member} does not answer; try again")

    async def _write(self, frame: pb.LinkFrame) -> None:
        try:
            with unless_given_up():
                async with asyncio.timeout(_PATIENCE):
                    await self._call.write(frame)
        except TimeoutError:
            raise self._no_answer() from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise Unavailable("its owner ends; try again") from None

    async def _read(self) -> None:
        try:
            async for frame in self._call:
                self._take(frame)
        except grpc.aio.AioRpcError as failure:
            self._end(f"its owner ends: {failure.details()}")
        else:
            self._end("its owner ends")

    def _take(self, frame: pb.QueueFrame) -> None:
        if frame.HasField("blocked"):
            self._blocked = frame.blocked
        self._tell(_REPLY, ((reply.id, reply) for reply in frame.replies))
        self._tell(_PREPARED, ((prepared.transaction, prepared) for prepared in frame.prepared))
        self._tell(_COMPLETED, ((transaction, None) for transaction in frame.completed))

    def _tell(self, kind: str, answers: Iterable[tuple[int, object]]) -> None:
        for number, answer in answers:
            if (future := self._waiting.pop(Awaited(kind, number), None)) and not future.done():
                future.set_result(answer)

    def _end(self, why: str) -> None:
        self._over = why
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unavailable(why))
