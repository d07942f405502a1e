"""Large bodies that were sent to a queue process and are kept a while: it need not send them back.

Most messages are consumed where they were published. The queue process says which bodies it would have sent, and which
it will not ask for; until then all are here, so that it never names one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from services.common.budget import Budget
from services.common.clients.consumed import Consumed
from services.common.clients.outbound import Attempt
from services.common.clients.shared_bodies import SharedBodies
from services.common.errors import InternalError
from services.common.memory import available
from services.common.message.weight import weight
from services.rpc import queue_pb2 as pb

WORTH: Final = 16 << 10
"""Bytes of a body, on average: smaller ones are sent in less time than it takes to find them again."""

_MOST = 64 << 20  # bytes for all queue processes …
_SHARE = 32  # … and this part of the memory at most


def room_for_bodies() -> Budget:
    """For all streams of a process together, however many queue processes there are."""
    return Budget(min(_MOST, available() // _SHARE))


class KeptBodies:
    """Of one stream. All streams of a process have one `room`."""

    def __init__(self, room: Budget, shared: SharedBodies) -> None:
        """`shared` are those that the queue process reads here."""
        self.consumed = Consumed()
        self.shared = shared
        self._room = room
        self._names = False  # a queue process that does not name bodies forgets none either
        self._bodies: dict[int, bytes] = {}

    def keep(self, attempts: Sequence[Attempt], size: int) -> bool:
        """Keeps the bodies of a batch of so many bytes, or none: where they are small, or there is no room.

        Nor where part of it is for queues without a consumer here, nor where one message would be here twice: it is
        sent to several partitions of the process.
        """
        count = sum(len(attempt.messages) for attempt in attempts)
        if not self._names or size < WORTH * count:
            return False
        if not all(self.consumed.has_one_of(attempt.queues) for attempt in attempts):
            return False
        uids = [uid for attempt in attempts for uid in attempt.messages.uids]
        if len(set(uids)) < count or not self._bodies.keys().isdisjoint(uids):
            return False
        bodies = [body for attempt in attempts for body in attempt.messages.bodies]
        if not self._room.take(weight((), bodies)):
            return False
        self._bodies.update(zip(uids, bodies, strict=True))
        return True

    def filled(self, frame: pb.QueueFrame, bodies: list[bytes]) -> list[bytes]:
        """The bodies of all deliveries of a frame; `bodies` are those that came with it.

        Raises InternalError for a frame that names what is not here, or that has not one body for each delivery.
        """
        self._names = self._names or frame.names_kept
        self.consumed.hear(frame)
        self.shared.hear(frame)
        if frame.forgotten:
            self._drop(uid for uid in frame.forgotten if uid in self._bodies)
        if not frame.HasField("deliveries") or not frame.deliveries.kept:
            return bodies
        uids, indexes = frame.deliveries.uids, frame.deliveries.kept
        if len(bodies) + len(indexes) != len(uids) or max(indexes) >= len(uids):
            raise InternalError(f"{len(uids)} deliveries with {len(bodies)} bodies and {len(indexes)} that are kept")
        found = dict(zip(indexes, self._take([uids[index] for index in indexes]), strict=True))
        came = iter(bodies)
        return [found[index] if index in found else next(came) for index in range(len(uids))]

    def close(self) -> None:
        """The stream is over, and with it all that was kept and all that was said on it."""
        self._drop(list(self._bodies))
        self.consumed, self._names = Consumed(), False
        self.shared.close()

    def _take(self, uids: Sequence[int]) -> list[bytes]:
        missing = [uid for uid in uids if uid not in self._bodies]
        if missing or len(set(uids)) < len(uids):
            raise InternalError(f"the body of message {min(missing or uids)} is not kept, or is named twice")
        return self._drop(uids)

    def _drop(self, uids: Iterable[int]) -> list[bytes]:
        dropped = [self._bodies.pop(uid) for uid in uids]
        self._room.give_back(weight((), dropped))
        return dropped
