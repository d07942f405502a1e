"""Bodies that a link's peer has put into memory which this process reads: see `common/clients/shared_bodies.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from weakref import ref

from services.common.clients.shared_memory import HEAD, read
from services.common.errors import InternalError
from services.queue.machine.body import Body, Place
from services.rpc import queue_pb2 as pb

_SECONDS: Final = 1.0  # once or twice as long a body may lie there: its peer wants the place for others


class LentBodies:
    """Of one link."""

    def __init__(self, released: Callable[[int], None], tell: Callable[[], None]) -> None:
        """`released` notes that a place is free; `tell` has what was noted said."""
        self._released, self._tell = released, tell
        self._memory: memoryview | None = None
        self._young: list[ref[Place]] = []
        self._old: list[ref[Place]] = []
        self._timer: asyncio.Handle | None = None
        self._closed = False

    def offered(self, memory: pb.SharedMemory) -> bool:
        """Whether the peer's memory can be read."""
        try:
            self._memory = read(memory)
        except (OSError, ValueError, OverflowError):
            return False
        return True

    def of(self, batch: pb.PublishBatch) -> list[Body]:
        """The bodies of a batch that has shared ones. Raises InternalError where they cannot be there."""
        at, sizes = batch.shared_at, batch.shared_sizes
        if self._memory is None or len(sizes) != len(batch.uids) or at < HEAD or at + sum(sizes) > len(self._memory):
            raise InternalError(f"{len(batch.uids)} messages with bodies that are not in the memory of their gateway")
        place = Place(at, self._is_free)
        bodies: list[Body] = []
        for size in sizes:
            bodies.append(place.lend(self._memory[at : at + size]))
            at += size
        self._young.append(ref(place))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._age)
        return bodies

    def _is_free(self, place: int) -> None:
        if not self._closed:
            self._released(place)

    def _age(self) -> None:
        """One place in each turn of the loop: others go on meanwhile."""
        loop = asyncio.get_running_loop()
        while self._old:
            if (place := self._old.pop()()) is not None:
                place.clear()
                self._timer = loop.call_soon(self._age)
                return
        self._tell()
        self._old, self._young = [young for young in self._young if young() is not None], []
        self._timer = loop.call_later(_SECONDS, self._age) if self._old else None

    def close(self) -> None:
        """The stream is over: the peer is told nothing more. What lies there yet is copied, as it would have been."""
        self._closed, self._memory = True, None
