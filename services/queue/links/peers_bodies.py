"""Large bodies that a peer has kept since it published them: where a message goes back to it, its body need not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from services.common.budget import Budget
from services.queue.machine.body import Body
from services.queue.machine.deliveries import Columns
from services.rpc import queue_pb2 as pb

_SECONDS = 1.0  # once or twice as long they are remembered: what is not delivered by then waits for a slow consumer


class PeersBodies:
    """Of one link. A body is known by its message's uid, and is the very object that came: a changed one is sent.

    All links have one `room`: what is remembered stays in memory when its queue has it no longer.
    """

    def __init__(self, forget: Callable[[Sequence[int]], None], room: Budget) -> None:
        """`forget` tells the peer of which uids nothing will be said any more."""
        self._forget = forget
        self._room = room
        self._bodies: dict[int, Body] = {}
        self._young: list[int] = []
        self._old: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def came(self, batch: pb.PublishBatch, bodies: Sequence[Body]) -> None:
        """A batch was received; its peer has kept the bodies."""
        if self._closed:
            return
        if not self._are_new(batch.uids, len(bodies)) or not self._room.take(sum(map(len, bodies))):
            self._forget(batch.uids)
            return
        self._bodies.update(zip(batch.uids, bodies, strict=True))
        self._young.extend(batch.uids)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._age)

    def _are_new(self, uids: Sequence[int], count: int) -> bool:
        """As a peer has it that keeps to what it says: what is taken of the room could not be given back else."""
        return len(set(uids)) == len(uids) == count and self._bodies.keys().isdisjoint(uids)

    def named(self, piece: Columns, batch: pb.DeliveryBatch) -> list[Body]:
        """Says in `batch` which of the bodies the peer has; gives the others, which have to be sent.

        Each is named once: the peer keeps it no longer.
        """
        if not self._bodies or self._bodies.keys().isdisjoint(piece.uids):
            return piece.bodies
        kept, sent = list[int](), list[Body]()
        for index, (uid, body) in enumerate(zip(piece.uids, piece.bodies, strict=True)):
            if self._bodies.get(uid) is body:
                kept.append(index)
                self._drop((uid,))
            else:
                sent.append(body)
        batch.kept.extend(kept)
        return sent

    def _drop(self, uids: Iterable[int]) -> None:
        self._room.give_back(sum(len(self._bodies.pop(uid)) for uid in uids))

    def _age(self) -> None:
        # Those of the same uid that came later, as the peer had it again, are forgotten early.
        over = [uid for uid in dict.fromkeys(self._old) if uid in self._bodies]
        self._old, self._young = self._young, []
        self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._age) if self._bodies else None
        if over:
            self._drop(over)
            self._forget(over)

    def close(self) -> None:
        """The stream is over: nothing more is remembered."""
        self._closed = True
        if self._timer:
            self._timer.cancel()
        self._drop(list(self._bodies))
