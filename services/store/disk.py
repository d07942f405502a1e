"""Whether the store can go on writing. If not, it logs why, and tells all processes that watch leases.

Publishers wait from when the disk has less room than the reserve. Within the reserve leases, acknowledgements and
checkpoints of the log go on, so consumers can make room. What publishers have sent before they were told is written in
the reserve too, except for the last of it, which messages never get. If other programs fill the disk to the last byte,
everything waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import structlog

from services.common.clock import Clock, monotonic
from services.common.disk import Room, mebibytes, reserve
from services.store.shortage import Shortage

_NEVER = 8  # an eighth of the reserve is not for messages
_COUNTED_SECONDS = 1.0  # between two figures of how much is free: each is told to all processes
_TWICE = 2  # whatever is written is in the log, then in the file as well
_MEND = "make room on the disk of the data folder, or mend it; the store goes on by itself"
_MAKE_ROOM = (
    "make room on the disk of the data folder, or in the stream (max_bytes), or let consumers empty queues; "
    "it goes on by itself"
)

log = structlog.get_logger()


class Disk:
    """`room` gives the disk's room, None where nothing is written to a disk; `tell` is called with every change."""

    def __init__(
        self,
        room: Callable[[], Room | None],
        configured: int,
        tell: Callable[[str], None],
        trouble: Callable[[], str] = str,
        clock: Clock = monotonic,
        waits: str = "confirms",
    ) -> None:
        """`configured` as HOPLINE_DISK_RESERVE; `trouble` is the provider's own, known without a commit.

        `waits`: what does while it cannot write, for people.
        """
        self._waits = waits
        self._room = room
        self._configured = configured
        self._tell = tell
        self._trouble = trouble
        self._clock = clock
        self._shortage = Shortage()
        self._failure = ""
        self._short = ""
        self._counted = -math.inf  # when `_short` was said
        self._told = ""
        self._held = 0

    @property
    def low(self) -> bool:
        """Whether there is less room than there has to be."""
        return self._shortage.now

    def look(self) -> None:
        """Finds out how much room there is; cheap enough for every commit."""
        found = self._room()
        if found is None:
            self._say()
            return
        kept, before = self._kept(found), self.low
        low = self._shortage.look(found.free, kept, self._clock())
        if low and self._clock() - self._counted >= _COUNTED_SECONDS:
            self._counted = self._clock()
            self._short = f"low on disk: {mebibytes(found.free)} free, {mebibytes(kept)} must be"
        if low and not before:
            log.warning(
                "low on disk, publishers of persistent messages wait",
                free=mebibytes(found.free),
                reserve=mebibytes(kept),
                do=_MAKE_ROOM,
            )
        elif before and not low:
            self._short, self._counted = "", -math.inf
            log.info("there is room on the disk again", free=mebibytes(found.free))
        self._say()

    def room_for_messages(self) -> int | None:
        """Bytes of messages that may be written now; None: any number."""
        found = self._room()
        return None if found is None else max(0, found.free - self._never(found)) // _TWICE

    def hold(self, weight: int) -> None:
        """So many bytes of messages, at least, wait for room; 0: none wait any more."""
        self._held = weight
        self.look()

    def _kept(self, found: Room) -> int:
        held = self._held and self._never(found) + self._held * _TWICE
        return max(reserve(self._configured, found.total), held)

    def _never(self, found: Room) -> int:
        return reserve(self._configured, found.total) // _NEVER

    def failed(self, failure: Exception) -> None:
        """A commit could not be written, and is tried again. The reason may change meanwhile, if a server ends."""
        if not self._failure:
            # A line without a stack: the disk is the cause, and the reason says why.
            log.error(
                "cannot write, will try until it works",
                waiting=self._waits,
                reason=repr(failure),
                do=getattr(failure, "do", _MEND),
            )
        self._failure = f"cannot write: {str(failure) or type(failure).__name__}"
        self._say()

    def wrote(self) -> None:
        """A commit is on disk."""
        if self._failure:
            self._failure = ""
            log.info("writing works again")
        self.look()
        self._say()

    def _say(self) -> None:
        trouble = self._failure or self._trouble() or self._short
        if trouble != self._told:
            self._told = trouble
            self._tell(trouble)
