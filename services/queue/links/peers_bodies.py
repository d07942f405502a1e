"""Large bodies that a peer has kept since it published them: where a message goes back to it, its body need not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from services.queue.machine.deliveries import Columns
from services.rpc import queue_pb2 as pb

_SECONDS = 1.0  # once or twice as long they are remembered: what is not delivered by then waits for a slow consumer


class PeersBodies:
    """Of one link. A body is known by its message's uid, and is the very object that came: a changed one is sent."""

    def __init__(self, forget: Callable[[Sequence[int]], None]) -> None:
        """`forget` tells the peer of which uids nothing will be said any more."""
        self._forget = forget
        self._young: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._timer: asyncio.TimerHandle | None = None

    def came(self, batch: pb.PublishBatch, bodies: Sequence[bytes]) -> None:
        """A batch was received; its peer may have kept the bodies."""
        if not batch.kept:
            return
        self._young.update(zip(batch.uids, bodies, strict=True))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._age)

    def named(self, piece: Columns, batch: pb.DeliveryBatch) -> list[bytes]:
        """Says in `batch` which of the bodies the peer has; gives the others, which have to be sent."""
        if not self._young and not self._old:
            return piece.bodies
        kept = [index for index, uid in enumerate(piece.uids) if self._has(uid, piece.bodies[index])]
        batch.kept.extend(kept)
        there = set(kept)
        return [body for index, body in enumerate(piece.bodies) if index not in there]

    def _has(self, uid: int, body: bytes) -> bool:
        """Whether the peer has it. Said once: the peer keeps it no longer."""
        for some in (self._young, self._old):
            if some.get(uid) is body:
                del some[uid]
                return True
        return False

    def _age(self) -> None:
        old, self._old, self._young = self._old, self._young, {}
        self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._age) if self._old else None
        if old:
            self._forget(list(old))

    def close(self) -> None:
        """The stream is over."""
        if self._timer:
            self._timer.cancel()
        self._young.clear()
        self._old.clear()
