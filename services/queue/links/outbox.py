"""What a link sends next: collected while a write is under way, then cut into frames of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import call
from typing import Final, NamedTuple

from services.common.budget import Budget
from services.common.containment import for_each
from services.common.message import in_front
from services.common.message.columns import put
from services.common.message.weight import FRAME_BYTES
from services.queue.links.lent_bodies import LentBodies
from services.queue.links.peers_bodies import PeersBodies
from services.queue.links.pieces import pieces
from services.queue.machine.body import Body, put_bodies
from services.queue.machine.deliveries import Columns, Deliveries
from services.rpc import queue_pb2 as pb


class Outgoing(NamedTuple):
    """A frame; `deliveries` are large ones that go in front of it."""

    frame: pb.QueueFrame
    deliveries: in_front.Parts | None

    def wire(self) -> bytes | in_front.Parts:
        """Its wire form."""
        if self.deliveries is None:
            return self.frame.SerializeToString()
        return in_front.frame(in_front.DELIVERIES, [self.deliveries], self.frame)


_NO_BATCH: Final = 0  # among `done`: peers say of each frame which has some that they have read it


class _Said(NamedTuple):
    """By a frame with `done`."""

    batches: list[int]
    actions: list[Callable[[], None]]


class Outbox:
    """`wake` is called when there is something to send after there was nothing.

    `room` is for bodies that peers keep, those of all links.
    """

    def __init__(self, wake: Callable[[], None], room: Budget) -> None:
        self.deliveries = Deliveries(wake)
        self._wake = wake
        self._frame = pb.QueueFrame(names_kept=True, reads_keys=True)
        self.peer_reads_keys = False
        self._begun = False
        self._unheard: deque[_Said] = deque()  # for each frame that has `done`, until the peer has read it
        self._heard = 0  # how many of these frames the peer has read
        self._when_read: list[Callable[[], None]] = []  # to be done when the peer has read all that there is by now
        self._read: list[Callable[[], None]] = []  # and by now it has
        self._replies: deque[pb.QueueReply] = deque()
        self._pieces: deque[Columns] = deque()  # of deliveries that did not fit into one frame
        self.peers = PeersBodies(self._forget, room)
        # Places of bodies that are there no more; sent as what is `settled`, or after a second. Whichever thread drops
        # the last one of a place, by collecting garbage, puts it here.
        self._free: deque[int] = deque()
        self._lent = LentBodies(self._free.append, self._tell_released)

    @property
    def frame(self) -> pb.QueueFrame:
        """The next frame, without its deliveries and replies; callers add to it."""
        self._begin()
        return self._frame

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._wake()

    def _forget(self, uids: Sequence[int]) -> None:
        self.frame.forgotten.extend(uids)

    def reply(self, reply: pb.QueueReply) -> None:
        """Answers a request, in the next frame that has room."""
        self._replies.append(reply)
        self._begin()

    def settled(self, number: int) -> None:
        """The settlements of a frame are safe; sent with the next frame that is sent for another reason."""
        self._frame.settled.append(number)

    def safe(self, transaction: int) -> None:
        """The settlements of a transaction are safe; sent with the next frame that is sent for another reason."""
        self._frame.safe.append(transaction)

    def kept(self, batch: pb.PublishBatch, bodies: list[Body]) -> list[Body]:
        """The peer keeps the bodies of a batch that came; gives all of them, wherever they are."""
        if batch.HasField("memory") and self._lent.offered(batch.memory):
            self.frame.reads_memory = True
        if batch.shared_sizes:
            bodies = self._lent.of(batch)
        self.peers.came(batch, bodies)
        return bodies

    def _tell_released(self) -> None:
        if self._free and not self._begun:
            self._begun = True
            self._wake()

    def close(self) -> None:
        """The stream is over."""
        self.peers.close()
        self._lent.close()

    def heard(self, frames: int) -> list[int]:
        """The peer has read so many frames with `done`; gives the batches of those that are newly read."""
        batches: list[int] = []
        while self._heard < frames and self._unheard:
            self._heard += 1
            said = self._unheard.popleft()
            batches += said.batches
            self._read += said.actions
        return batches

    def when_read(self, action: Callable[[], None]) -> None:
        """Has it done when the peer has read all that it was sent up to now, and has said so."""
        self._when_read.append(action)
        self._begin()

    def peer_has_read(self) -> None:
        """Does what has waited for that; what the peer has said meanwhile is carried out."""
        actions, self._read = self._read, []
        for_each("going on when a gateway has read so far", actions, call)

    @property
    def pending(self) -> bool:
        """Whether there is something to send."""
        return self._begun or bool(self._pieces) or bool(self.deliveries.runs)

    def take(self) -> Outgoing | None:
        """The next frame, or None when there is nothing to send. It exceeds the size only for one large message."""
        if not self.pending:
            return None
        frame = self._frame
        self._frame, self._begun = pb.QueueFrame(), False
        while self._free:
            frame.released.append(self._free.popleft())
        deliveries = self._add_deliveries(frame) if self._pieces or self.deliveries.runs else None
        batches, actions = list(frame.done), list[Callable[[], None]]()
        if self._pieces or self.deliveries.runs:
            self._postpone(frame)
        elif self._when_read:
            actions, self._when_read = self._when_read, actions
            frame.done.append(_NO_BATCH)
        if frame.done:
            self._unheard.append(_Said(batches, actions))
        self._add_replies(frame)
        return Outgoing(frame, deliveries)

    def _add_deliveries(self, frame: pb.QueueFrame) -> in_front.Parts | None:
        """Puts deliveries into the frame, or gives them where they go in front of it."""
        deliveries = self.deliveries
        if not self._pieces:
            self._pieces.extend(pieces(deliveries.columns, deliveries.carried))
            deliveries.reset()
        batch = frame.deliveries
        if deliveries.traced:
            # All of them, even if deliveries are left for the next frame: they may come early, and never late.
            batch.traced.extend(deliveries.traced)
            deliveries.traced.clear()
        piece = self._pieces.popleft()
        _describe(piece, batch, keys=self.peer_reads_keys)
        bodies = self.peers.named(piece, batch)
        if not in_front.pays(bodies, sum(map(len, bodies))):
            put_bodies(batch.bodies, bodies)
            return None
        large = in_front.batch(in_front.DELIVERIES, [bytes(body) for body in bodies], batch)
        frame.ClearField("deliveries")
        return large

    def _add_replies(self, frame: pb.QueueFrame) -> None:
        size = 0
        while self._replies and (not size or size + self._replies[0].ByteSize() <= FRAME_BYTES):
            reply = self._replies.popleft()
            size += reply.ByteSize()
            frame.replies.append(reply)
        self._begun |= bool(self._replies)

    def _postpone(self, frame: pb.QueueFrame) -> None:
        """Deliveries are left for the next frame: notices that consumers ended must not overtake them."""
        self._frame.detached.extend(frame.detached)
        self._frame.cancelled.extend(frame.cancelled)
        self._frame.drained.extend(frame.drained)
        del frame.drained[:]
        del frame.detached[:]
        del frame.cancelled[:]
        self._begun = True


def encode(piece: Columns, batch: pb.DeliveryBatch) -> None:
    """Puts deliveries on the wire."""
    _describe(piece, batch, keys=False)
    put_bodies(batch.bodies, piece.bodies)


def _describe(piece: Columns, batch: pb.DeliveryBatch, *, keys: bool) -> None:
    """All but their bodies; `keys` is as `columns.put` says."""
    batch.uids.extend(piece.uids)
    put(batch, piece.facts, piece.properties, keys=keys)
    for run in piece.runs:
        attempts = run.attempts
        batch.runs.add(
            consumer=run.consumer,
            count=run.count,
            redelivered=attempts > 0,
            attempts=attempts,
            acquired=run.acquired,
        )
