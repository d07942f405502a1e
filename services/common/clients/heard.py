"""How many answers of a queue process were received: until it knows, it remembers what may be sent to it again.

The count goes with the next frame to the process. If there is none for a moment, a frame of its own carries it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.rpc import queue_pb2 as pb

_SECONDS = 0.1


class Heard:
    """The count of one stream at a time; `write` is called when no other frame has carried the count."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._frames = self._said = 0
        self._timer: asyncio.TimerHandle | None = None

    def answered(self) -> None:
        """One more frame with `done` was read."""
        self._frames += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self.say_at_last)

    def say_at_last(self) -> None:
        """Sends the count in a frame of its own, unless a frame has carried it."""
        self._timer = None
        if self._frames != self._said:
            self._write()

    def say(self, frame: pb.LinkFrame) -> None:
        """Puts the count into the next frame, unless it was said already."""
        if self._frames != self._said:
            frame.heard = self._said = self._frames

    def forget(self) -> None:
        """Begins again from zero: the stream ended."""
        self._frames = self._said = 0
        if self._timer:
            self._timer.cancel()
            self._timer = None
