"""Large bodies that were sent to a queue process and are kept a while: it need not send them back.

Most messages are consumed where they were published. The queue process says which bodies it would have sent, and which
it will not ask for; until then all are here, so that it never names one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from services.common.clients.outbound import Attempt
from services.common.errors import InternalError
from services.common.memory import available
from services.common.message.weight import weight
from services.rpc import queue_pb2 as pb

WORTH: Final = 16 << 10
"""Bytes of a body, on average: smaller ones are sent in less time than it takes to find them again."""

_MOST = min(64 << 20, available() // 32)  # bytes for one queue process


class KeptBodies:
    """Of one stream. `wanted` as soon as something may be delivered on it."""

    def __init__(self) -> None:
        self.wanted = False
        self._bodies: dict[int, bytes] = {}
        self._size = 0

    def keep(self, attempts: Sequence[Attempt], size: int) -> bool:
        """Keeps the bodies of a batch of so many bytes, or none: where they are small, or there is no room.

        Nor where one message would be here twice: it is sent to several partitions of the process.
        """
        count = sum(len(attempt.messages) for attempt in attempts)
        if not self.wanted or size < WORTH * count or self._size + size > _MOST:
            return False
        uids = [uid for attempt in attempts for uid in attempt.messages.uids]
        if len(set(uids)) < count or not self._bodies.keys().isdisjoint(uids):
            return False
        bodies = [body for attempt in attempts for body in attempt.messages.bodies]
        self._bodies.update(zip(uids, bodies, strict=True))
        self._size += weight((), bodies)
        return True

    def filled(self, frame: pb.QueueFrame, bodies: list[bytes]) -> list[bytes]:
        """The bodies of all deliveries of a frame; `bodies` are those that came with it.

        Raises InternalError for a frame that names what is not here.
        """
        if frame.forgotten:
            self._take(frame.forgotten)
        if not frame.HasField("deliveries") or not frame.deliveries.kept:
            return bodies
        uids, indexes = frame.deliveries.uids, frame.deliveries.kept
        found = dict(zip(indexes, self._take(uids[index] for index in indexes), strict=True))
        came = iter(bodies)
        return [found[index] if index in found else next(came) for index in range(len(uids))]

    def _take(self, uids: Iterable[int]) -> list[bytes]:
        try:
            taken = [self._bodies.pop(uid) for uid in uids]
        except KeyError as missing:
            raise InternalError(f"the body of message {missing} is not kept") from None
        self._size -= weight((), taken)
        return taken
