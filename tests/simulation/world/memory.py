"""Memory that gateways share with queue processes: it has room for little, and another name for each piece.

There, all that is not persistent and goes to a consumer of its gateway is large enough for it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from services.common.budget import Budget
from services.common.clients import kept_bodies, places, queue_link, shared_bodies
from services.common.clients.shared_memory import HEAD
from services.queue.links import lent_bodies
from services.rpc import queue_pb2 as pb

_CHUNK: Final = 4096
_CHUNKS: Final = 3
_SECONDS: Final = 0.2  # that a body may lie there
_REFUSED: Final = 5  # each of so many cannot be read, …
_FAILS: Final = 11  # … and each of so many writes finds no memory
_SPOILT: Final = b"\xdd"

_SharedBodies: Final = shared_bodies.SharedBodies


class Machine:
    """All of it, by its token."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._there: dict[bytes, Memory] = {}

    def make(self, size: int) -> Memory:
        """In place of SharedMemory."""
        made = Memory(next(self._numbers), size)
        self._there[made.offer.token] = made
        return made

    def read(self, offer: pb.SharedMemory) -> memoryview:
        """As `shared_memory.read`."""
        found = self._there[offer.token]
        if found.is_closed or found.offer.number % _REFUSED == 0:
            raise OSError("it cannot be had")
        return memoryview(found.octets).toreadonly()


class Memory:
    """As SharedMemory."""

    def __init__(self, number: int, size: int) -> None:
        self.octets = bytearray(HEAD + size)
        self.offer = pb.SharedMemory(pid=1, number=number, size=HEAD + size, token=number.to_bytes(16, "big"))
        self.is_closed = False
        self._writes = 0

    def write(self, place: int, parts: Iterable[bytes]) -> None:
        if self.is_closed:
            raise ValueError("written to when the stream has ended")
        self._writes += 1
        if self._writes % _FAILS == 0:
            raise OSError("no memory")
        for part in parts:
            self.octets[place : place + len(part)] = part
            place += len(part)

    def give_back(self) -> None:
        self.octets[HEAD:] = _SPOILT * (len(self.octets) - HEAD)

    def close(self) -> None:
        self.is_closed = True


def _here(room: Budget, *, locally: bool) -> Any:
    del locally  # addresses of a world are names of hosts
    return _SharedBodies(room, locally=True)


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """As long as it lasts, bodies are in such memory."""
    machine = Machine()
    with contextlib.ExitStack() as after:
        for module, name, value in (
            (kept_bodies, "WORTH", 1),
            (places, "CHUNK", _CHUNK),
            (shared_bodies, "CHUNK", _CHUNK),
            (shared_bodies, "_EACH", _CHUNKS * _CHUNK),
            (shared_bodies, "SharedMemory", machine.make),
            (queue_link, "SharedBodies", _here),
            (lent_bodies, "read", machine.read),
            (lent_bodies, "_SECONDS", _SECONDS),
        ):
            after.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield
