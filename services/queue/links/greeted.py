"""Which stream of each peer is its latest: the peer has given up older ones, and sent their frames elsewhere since.

The open links do not tell. The first bytes of a stream may come after a later one was opened, heard and closed: its
messages are not marked as resent, and would be taken a second time.
"""

from __future__ import annotations

from typing import Final

from services.rpc import queue_pb2 as pb

_PEERS: Final = 1024  # beyond that, the peer whose Hello is oldest is forgotten


class Greeted:
    """The highest number of a stream, by the peer's origin and the member (queue process) that it addresses."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def is_latest(self, hello: pb.Hello) -> bool:
        """Whether no later stream of this peer was heard before; notes the stream's number."""
        peer = hello.origin, hello.member
        latest = self._numbers.pop(peer, 0)
        self._numbers[peer] = max(latest, hello.number)
        if len(self._numbers) > _PEERS:
            del self._numbers[next(iter(self._numbers))]
        return hello.number >= latest
