"""One long-lived stream to one queue process: what one turn of the event loop asks for goes out as a frame or a few.

While the stream is full the next frame collects, so a frame's size comes from load. The link keeps every batch until it
is `done`; when the stream breaks, its listener gets back the batches that are not, and decides where they go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import structlog

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.heard import Heard
from services.common.clients.kept_bodies import KeptBodies
from services.common.clients.link_frame import Frame, Settlement
from services.common.clients.link_listener import LinkListener
from services.common.clients.outbound import Attempt, encode, fitting
from services.common.clients.queue_frame import decoded
from services.common.clients.refusals import Refusals
from services.common.clients.rooms import Rooms
from services.common.clients.sent import Sent
from services.common.clients.shared_bodies import SharedBodies
from services.common.containment import by_itself, contained, for_each
from services.common.errors import Unavailable
from services.common.message import in_front
from services.common.message.weight import FRAME_BYTES
from services.common.streams.client import CannotConnect, ClientStream, connect
from services.common.streams.grpc_fields import path_of
from services.common.streams.soon import Soon
from services.common.topology.slots import SlotId, slots_in
from services.rpc import queue_pb2 as pb

log = structlog.get_logger()

_ATTACH = path_of(pb.DESCRIPTOR.services_by_name["Queue"].methods_by_name["Attach"])
_RETRY_SECONDS = 0.1
_UIDS = 50_000  # that one frame settles: the queue process does other work between two frames
_UID_BYTES = 8  # what is said of them besides takes the place of others
_ENOUGH_BYTES = 64 << 10  # of messages are sent before the turn ends: the queue process works on them meanwhile


class QueueLink:
    """Opens its stream when started and again whenever it breaks, until it is stopped."""

    def __init__(
        self, member: str, address: str, greeting: Callable[[str], pb.Hello], listener: LinkListener, rooms: Rooms
    ) -> None:
        """`greeting` gives the first frame of a stream to a member; `rooms` are those of all links."""
        self.member = member
        self.address = address
        self.up = False
        self.streams = 0  # opened so far
        self.broken = False  # the stream ended by itself, and was not given up here
        self.full: AbstractSet[SlotId] = frozenset()  # queues whose publishers have to wait …
        self.full_everywhere = False  # … or all queues of the process
        self.outstanding = 0  # bytes of messages that are handed over and not done
        self._greeting = greeting
        self._listener = listener
        self._frame = Frame()
        self._cut: deque[Frame] = deque()  # full frames, to be written before that one
        self._unanswered: dict[int, list[Settlement]] = {}  # by the frame's number among those with settlements
        self._settling = 0
        self._uids = 0  # that the collecting frame settles
        self._attaching = 0  # bytes of its attaches
        self._waiting: list[Attempt] = []
        self._waiting_size = 0
        self._reads_keys = False  # the queue process does
        self._published = self._sequence = 0
        self._sent: dict[int, Sent] = {}
        self._head: pb.PublishBatch | None = None  # what the next batch says besides its messages
        self._sent_again: list[pb.SentAgain] = []
        self._kept = KeptBodies(rooms.kept, SharedBodies(rooms.shared, locally=address.startswith("unix:")))
        self._requests: dict[int, asyncio.Future[pb.QueueReply]] = {}
        self._request_id = 0
        self._write_soon = Soon(self._write)
        self._heard = Heard(self._write_soon.now)
        self._stream: ClientStream | None = None
        self._over = asyncio.Event()  # set when the stream has ended
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connects in the background; `link_up` tells when."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"link {self.address}")

    def give_up(self) -> None:
        """Counts the stream as broken, whatever still comes from it; `stop` must follow."""
        if self._task:
            self._task.cancel()
        self._down()

    async def stop(self) -> None:
        """Ends the stream; `link_down` gives back what is not done."""
        self._heard.say_at_last()
        task, self._task = self._task, None
        if task:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -------------------------------------------------------------- requests; all are sent at the turn's end

    def publish(self, attempt: Attempt) -> None:
        """Adds messages to the next batch; what a former owner may have delivered goes behind what clients hold."""
        if attempt.resent and self._frame.fields.told:
            self._cut_here()
        self._waiting.append(attempt)
        self._published += 1
        self._waiting_size += attempt.size
        self.outstanding += attempt.size
        if self._waiting_size < _ENOUGH_BYTES:
            self._write_soon()
        else:
            self._write_soon.now()

    def resume(self, partition: int) -> None:
        """Says that what was refused of a partition is published again from now on."""
        self._next_head().resumed.append(partition)

    def _next_head(self) -> pb.PublishBatch:
        if self._head is None:
            self._head = pb.PublishBatch()
        return self._head

    def begin(self, partition: int, epoch: int) -> None:
        """Says that what is published to a partition from now on is meant for its owner in this epoch."""
        self._next_head().terms.add(partition=partition, epoch=epoch)

    def sent_again(self, partition: int, epoch: int) -> None:
        """Says that everything which owners before this epoch have not answered was published again by now."""
        self._sent_again.append(pb.SentAgain(partition=partition, epoch=epoch))
        self._write_soon()

    def is_full(self, queue_ids: Iterable[SlotId]) -> bool:
        """Whether publishers to one of these queues have to wait until consumers have made room."""
        return self.full_everywhere or (bool(self.full) and not self.full.isdisjoint(queue_ids))

    def mark(self) -> int:
        """Stands for all attempts published so far; see `passed`."""
        return self._published

    def passed(self, mark: int) -> bool:
        """Whether all attempts that a mark stands for are answered, or were lost with the stream."""
        oldest = next(iter(self._sent.values()), None)
        preceding = oldest.preceding if oldest else self._published - len(self._waiting)
        return not self.up or preceding >= mark

    def publish_in_transaction(self, attempts: Iterable[Attempt], transaction: int) -> None:
        """Sends batches that the queue process holds until the transaction is decided; the link does not keep them."""
        left = list(attempts)
        while left:
            some, size = fitting(left)
            left = left[len(some) :]
            if self._frame.size and self._frame.size + size > FRAME_BYTES:  # of several transactions, or of this one
                self._cut_here()
            self._sequence += 1
            self._frame.batches.append(encode(some, self._sequence, transaction))
            self._frame.size += size
        self._write_soon()

    def settle(
        self,
        queue_id: SlotId,
        outcome: pb.Outcome.ValueType,
        uids: Sequence[int],
        transaction: int = 0,
        term: int = 0,
        change: Change = UNCHANGED,
    ) -> None:
        """Tells the outcome of deliveries. Without a transaction, it is kept until the queue process has it safe."""
        for first in range(0, len(uids), _UIDS):
            some = uids[first : first + _UIDS]
            size = len(some) + len(change.annotations) // _UID_BYTES
            if self._uids + size > _UIDS:
                self._cut_here()
            self._uids += size
            self._frame.settle(Settlement(queue_id, outcome, some, change), transaction, term)
        self._write_soon()

    def take_unsettled(self, is_lost: Callable[[SlotId], bool]) -> list[Settlement]:
        """Takes out the settlements for queues that `is_lost` names, which the queue process may not have heard."""
        lost: list[Settlement] = []
        for settlements in (*self._unanswered.values(), *(frame.settled for frame in (*self._cut, self._frame))):
            lost += [settlement for settlement in settlements if is_lost(settlement.queue_id)]
            settlements[:] = [settlement for settlement in settlements if not is_lost(settlement.queue_id)]
        return lost

    def attach(self, consumer: pb.AttachConsumer) -> None:
        """Attaches a consumer; answered by `attached`."""
        size = consumer.ByteSize()
        if self._attaching + size > FRAME_BYTES and not self._is_of_the_last_queue(consumer):
            self._cut_here()  # of all that an owner is told at once: no frame may be too large
        self._attaching += size
        self._kept.consumed.attach(consumer)
        self._frame.fields.attaches.append(consumer)
        self._write_soon()

    def _is_of_the_last_queue(self, consumer: pb.AttachConsumer) -> bool:
        """All that is held of a queue is said in one frame: behind that the owner gives the rest to others."""
        attaches = self._frame.fields.attaches
        return bool(attaches) and attaches[-1].queue_id == consumer.queue_id

    def told(self, partition: int, epoch: int, used: Iterable[SlotId]) -> None:
        """Says that all deliveries held of a partition were reported; `used` are auto-delete queues."""
        self._frame.fields.told.add(partition=partition, epoch=epoch, used=used)
        self._write_soon()

    def credit(self, consumer: int, messages: int, size: int, *, drain: bool = False, stop: bool = False) -> None:
        """Adds to a consumer's credit; a drain or a stop is answered by `drained`."""
        self._frame.fields.credits.add(consumer=consumer, messages=messages, bytes=size, drain=drain, stop=stop)
        self._write_soon()

    def detach(self, consumer: int) -> None:
        """Ends a consumer; answered by `detached`, after which nothing is delivered to it."""
        self._kept.consumed.detach(consumer)
        self._frame.fields.detaches.append(consumer)
        self._write_soon()

    def step(self, transaction: int, step: pb.TransactionStep.Step.ValueType, *, alone: bool = False) -> None:
        """Sends PREPARE (to the only process that takes part: `alone`), COMPLETE or ABORT, after all that was asked."""
        self._frame.fields.transactions.add(transaction=transaction, step=step, alone=alone)
        self._write_soon()

    async def request(self, **request: Any) -> pb.QueueReply:  # noqa: ANN401 - one field of the oneof
        """One of `get`, `purge`, `delete`, `inspect`, and perhaps `term`; raises Unavailable when the stream breaks."""
        if not self.up:
            raise Unavailable(f"queue process at {self.address} is away")
        self._request_id += 1
        reply: asyncio.Future[pb.QueueReply] = asyncio.get_running_loop().create_future()
        self._requests[self._request_id] = reply
        self._frame.fields.requests.add(id=self._request_id, **request)
        self._write_soon()
        return await reply

    # -------------------------------------------------------------- the stream

    async def _run(self) -> None:
        try:
            while True:
                await self._connected()
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._down()

    async def _connected(self) -> None:
        self._over = asyncio.Event()
        try:
            self._stream = stream = await connect(self.address, _ATTACH, self)
        except CannotConnect as failure:
            log.debug("queue process is away", address=self.address, failure=str(failure))
            return
        try:
            stream.write(pb.LinkFrame(hello=self._greeting(self.member)).SerializeToString())
            by_itself("greeting a queue process", self._up)
            await self._over.wait()
        finally:
            stream.close()
            self._down()

    def received(self, message: bytes) -> None:
        """A frame of the queue process; ignored once the stream was given up."""
        if self.up:
            frame, bodies = decoded(message)
            self._reads_keys |= frame.reads_keys
            self._read(frame, self._kept.filled(frame, bodies))

    def writable(self) -> None:
        """The stream was full, and no longer is."""
        self._write_soon()

    def ended(self, reason: str) -> None:
        """The stream broke, or the queue process ended it."""
        log.debug("queue process is away", address=self.address, failure=reason)
        self._over.set()
        self.broken = True
        self._down()

    def _write(self) -> None:
        stream = self._stream
        if not self.up or stream is None:
            return
        while self._cut and not stream.full:
            stream.write(self._numbered(self._cut.popleft()).wire())
        while self._waiting_size > FRAME_BYTES and not stream.full:
            # Large batches go alone and before the rest: requests must not overtake messages published before them.
            stream.write(Frame(batches=[self._batch()]).wire())
        if stream.full:
            return  # `writable` goes on
        if self._waiting:
            self._frame.batches.append(self._batch())
        # Only after everything that was published until now.
        self._frame.fields.sent_again.extend(self._sent_again)
        self._sent_again.clear()
        self._heard.say(self._frame.fields)
        stream.write(self._numbered(self._take_frame()).wire())

    def _take_frame(self) -> Frame:
        frame, self._frame, self._uids, self._attaching = self._frame, Frame(), 0, 0
        return frame

    def _cut_here(self) -> None:
        """Makes frames of what was asked so far, to be written before all that follows."""
        while self._waiting_size > FRAME_BYTES:
            self._cut.append(Frame(batches=[self._batch()]))
        if self._waiting:
            self._frame.batches.append(self._batch())
        self._cut.append(self._take_frame())

    def under_way(self) -> list[Attempt]:
        """The attempts that are not done."""
        return [attempt for sent in self._sent.values() for attempt in sent.attempts] + self._waiting

    def _numbered(self, frame: Frame) -> Frame:
        if frame.fields.settles:
            self._settling += 1
            if frame.settled:
                self._unanswered[self._settling] = frame.settled
        return frame

    def _batch(self) -> bytes | in_front.Parts:
        """A batch of the waiting attempts, as far as they fit into a frame."""
        some, size, preceding = self._waiting, self._waiting_size, self._published - len(self._waiting)
        if size <= FRAME_BYTES:
            self._waiting, self._waiting_size = [], 0
        else:
            some, size = fitting(some)
            self._waiting, self._waiting_size = self._waiting[len(some) :], self._waiting_size - size
        self._sequence += 1
        self._sent[self._sequence] = Sent(some, size, preceding)
        if self._kept.keep(some, size):
            self._kept.shared.say(self._next_head(), some)
        head, self._head = self._head, None
        return encode(some, self._sequence, 0, head, keys=self._reads_keys)

    def _read(self, frame: pb.QueueFrame, bodies: list[bytes]) -> None:
        for_each("hearing that messages were refused", frame.refusals, self._refused)
        for_each("hearing that messages are safe", frame.done, self._done)
        if frame.done:
            self._heard.answered()
        for reply in frame.replies:
            waiting = self._requests.pop(reply.id, None)
            if waiting and not waiting.done():
                waiting.set_result(reply)
        if frame.HasField("blocked"):
            self.full_everywhere, self.full = frame.blocked.everywhere, frozenset(slots_in(frame.blocked.queue_ids))
        by_itself("carrying out a queue process's frame", lambda: self._listener.received(self, frame, bodies))
        if frame.done and (frame.detached or frame.cancelled):
            self._write_soon()  # who comes next may wait for what we have given back, and for our word that this is all
        # Only after the listener has heard which partitions are lost.
        for number in frame.settled:
            self._unanswered.pop(number, None)

    def _done(self, sequence: int) -> None:
        sent = self._sent.pop(sequence, None)
        if sent is None:
            return
        self.outstanding -= sent.size
        for_each("hearing that messages are safe", sent.attempts, self._listener.done)

    def _refused(self, refusal: pb.Refusal) -> None:
        sent = self._sent.get(refusal.sequence)
        if sent is None:
            return
        sent.refusals = sent.refusals or Refusals(sent.attempts)
        for attempt, indexes in sent.refusals.parts(refusal):
            try:
                self._listener.refused(self, attempt, SlotId(refusal.queue_id), indexes, refusal.reason)
            except Exception as fault:  # noqa: BLE001 - `done` follows, and must not confirm these messages
                contained("hearing that messages were refused", fault)
                attempt.delivery.refuse(attempt.numbers(indexes), SlotId(refusal.queue_id), pb.OTHER)

    def _up(self) -> None:
        self.up, self.broken, self._reads_keys = True, False, False
        self.streams += 1
        self._sequence = self._settling = 0
        self._listener.link_up(self)
        self._write_soon()

    def _down(self) -> None:
        if not self.up:
            return
        self.up, self.full_everywhere, self.full = False, False, frozenset()
        attempts = self.under_way()
        self._sent, self._waiting, self._waiting_size, self.outstanding = {}, [], 0, 0
        self._unanswered = {0: self.take_unsettled(lambda _: True)}
        self._take_frame()
        self._kept.close()
        self._cut.clear()
        self._heard.forget()
        self._head = None
        self._sent_again.clear()
        requests, self._requests = self._requests, {}
        for waiting in requests.values():
            if not waiting.done():
                waiting.set_exception(Unavailable(f"queue process at {self.address} went away"))
        by_itself("giving back what a lost queue process had", lambda: self._listener.link_down(self, attempts))
        self._unanswered.clear()
