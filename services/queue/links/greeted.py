"""Which stream of each peer is its latest: what comes on an older one was given up, and sent elsewhere since.

Links alone do not tell. The first bytes of a stream may come when a later one was opened, heard and closed again: what
it brings says that it never came before, and would be taken a second time.
"""

from __future__ import annotations

from typing import Final

from services.rpc import queue_pb2 as pb

_PEERS: Final = 1024  # those are forgotten first that greeted longest ago


class Greeted:
    """By origin and the member that it means: the highest number of a stream."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def is_latest(self, hello: pb.Hello) -> bool:
        """Whether no later stream of this peer was heard before; it is noted."""
        peer = hello.origin, hello.member
        latest = self._numbers.pop(peer, 0)
        self._numbers[peer] = max(latest, hello.number)
        if len(self._numbers) > _PEERS:
            del self._numbers[next(iter(self._numbers))]
        return hello.number >= latest
