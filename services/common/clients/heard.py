"""How many answers of a queue process were heard: it keeps what may be sent again until it knows.

That goes with the next frame. While nothing is asked there is none, so it has one of its own after a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.rpc import queue_pb2 as pb

_SECONDS = 0.1


class Heard:
    """Of one stream after the other; `write` is called when there is nothing else to say."""

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
        """With a frame of its own, unless it was said."""
        self._timer = None
        if self._frames != self._said:
            self._write()

    def say(self, frame: pb.LinkFrame) -> None:
        """With the next frame."""
        if self._frames != self._said:
            frame.heard = self._said = self._frames

    def forget(self) -> None:
        """Another stream begins, or none."""
        self._frames = self._said = 0
        if self._timer:
            self._timer.cancel()
            self._timer = None
