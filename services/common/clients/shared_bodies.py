"""Large bodies that a queue process reads in memory of this process, instead of from the socket between them.

It needs to look at them seldom: most go back to where they came from, and are named (`kept_bodies.py`). But they
have to be there, should this process end: what it has mapped is there for as long as it likes. On their way through a
socket each would be copied four times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from services.common.budget import Budget
from services.common.clients.outbound import Attempt
from services.common.clients.places import CHUNK, Places
from services.common.clients.shared_memory import HEAD, SharedMemory
from services.common.memory import available
from services.common.message.alike import objects
from services.rpc import queue_pb2 as pb

# As much as lies between publishers and consumers that both go as fast as they can: bodies that find no room go through
# the socket, and of 1 MB a half of this made that many. With twice as much, smaller ones leave the processor's cache.
_MOST: Final = 128 << 20  # bytes for all queue processes …
_SHARE: Final = 32  # … and this part of the memory at most
_EACH: Final = 64 << 20  # bytes for one of them
_QUIET_SECONDS: Final = 10.0  # in which nothing was there: before, it will be needed again soon


def room_to_share() -> Budget:
    """For all streams of a process together."""
    return Budget(min(_MOST, available() // _SHARE))


class SharedBodies:
    """Of one stream. All streams of a process have one `room`, of which each takes its part when it needs it first.

    What was shared on a stream that has ended is never written over: the queue process may read it yet.
    """

    def __init__(self, room: Budget, *, locally: bool) -> None:
        """`locally`: the queue process is on this machine."""
        self._room = room
        self._locally = self._may_offer = locally
        self._size = 0
        self._memory: SharedMemory | None = None
        self._places: Places | None = None  # once the queue process reads it
        self._is_quiet = True
        self._timer: asyncio.TimerHandle | None = None

    def say(self, head: pb.PublishBatch, attempts: Sequence[Attempt]) -> None:
        """The bodies of the next batch are kept: `head` says so, and where they are if they are not in it."""
        head.kept = True
        if not self.put(head, attempts) and (memory := self.offer()):
            head.memory.CopyFrom(memory)

    def offer(self) -> pb.SharedMemory | None:
        """What the queue process has to be told, once there is room: before that nothing is shared."""
        size = min(_EACH, self._room.most // 2) // CHUNK * CHUNK
        if not (self._may_offer and size and self._room.take(size)):
            return None
        self._may_offer = False
        try:
            self._memory = SharedMemory(size)
        except OSError:
            self._room.give_back(size)
            return None
        self._size = size
        return self._memory.offer

    def put(self, batch: pb.PublishBatch, attempts: Sequence[Attempt]) -> bool:
        """Whether the bodies are shared, as `batch` says then.

        Persistent ones are not: they are read at once, to be stored.
        """
        if self._places is None or self._memory is None or any(map(_are_persistent, attempts)):
            return False
        bodies = [body for attempt in attempts for body in attempt.messages.bodies]
        sizes = list(map(len, bodies))
        place = self._places.take(sum(sizes))
        if place is None:
            return False
        try:
            self._memory.write(HEAD + place, bodies)
        except OSError:
            self._places.give_back(place)
            return False
        batch.shared_at = HEAD + place
        batch.shared_sizes.extend(sizes)
        self._is_quiet = False
        if self._timer is None:
            self._look_later()
        return True

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._look)

    def _look(self) -> None:
        """Memory that was not needed for a while goes back to the system."""
        self._timer = None
        if self._memory is None or self._places is None:
            return
        if self._is_quiet and self._places.are_free:
            self._memory.give_back()
            return
        self._is_quiet = True
        self._look_later()

    def hear(self, frame: pb.QueueFrame) -> None:
        """Raises InternalError where places are released that are none."""
        if frame.reads_memory and self._memory and self._places is None:
            self._places = Places(self._size // CHUNK)
        if frame.released and self._places:
            for place in frame.released:
                self._places.give_back(place - HEAD)

    def close(self) -> None:
        """The stream is over; the next one has other memory."""
        if self._memory:
            self._memory.close()
            self._room.give_back(self._size)
        if self._timer:
            self._timer.cancel()
        self._memory = self._places = self._timer = None
        self._may_offer = self._locally


def _are_persistent(attempt: Attempt) -> bool:
    return any(facts.persistent for facts in objects(attempt.messages.facts).values())
