"""How much of the stream is in use, segment by segment.

The log is cut into segments, each with a subject of its own: a segment that nothing refers to is deleted as a whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from services.common.disk import Room

_FIRST = attrgetter("first")
_SPARSE = 2
_OVERHEAD = 256  # bytes of a message in the stream besides its payload, at most
_MAKES_ROOM = 8  # an eighth is for snapshots, and for moving living contents …
_SMALL = 32  # … which leave a quarter of that to acknowledgements


@dataclass(slots=True)
class Segment:
    """A stretch of the log from sequence `first` on; `live` bytes of it are contents that are referred to."""

    number: int
    first: int
    bytes: int = 0
    live: int = 0

    @property
    def sparse(self) -> bool:
        """Whether to write its living contents again: so the log never has much more than twice what it needs."""
        return self.live * _SPARSE < self.bytes


class Space:
    """All segments, in the order of the log."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.pins = 0  # the number of readers of contents that may be dead by now

    def wrote(self, number: int, sequence: int, size: int) -> None:
        """Counts a message of segment `number`."""
        if not self.segments or self.segments[-1].number < number:
            self.segments.append(Segment(number, sequence))
        self.segments[-1].bytes += size

    def uses(self, sequence: int, size: int) -> None:
        """So many bytes more (fewer if negative) of the message at `sequence` are referred to."""
        self.segments[bisect_right(self.segments, sequence, key=_FIRST) - 1].live += size

    def until(self, segment: Segment) -> int:
        """The sequence at which the next segment begins."""
        following = self.segments.index(segment) + 1
        return self.segments[following].first if following < len(self.segments) else 1 << 63

    def before(self, number: int) -> list[Segment]:
        """The segments before `number`, which a snapshot covers; none while there are `pins`."""
        return [] if self.pins else [segment for segment in self.segments if segment.number < number]


class Left:
    """The room left in a stream with a limit: as the server told it last, less what was written since."""

    def __init__(self) -> None:
        self.room: Room | None = None

    def told(self, size: int, most: int) -> None:
        """The stream has `size` bytes, of `most`; 0: it has no limit."""
        self.room = Room(max(0, most - size), most) if most else None

    def wrote(self, messages: Sequence[bytes]) -> None:
        """Subtracts messages that were written."""
        if self.room:
            size = sum(map(len, messages)) + len(messages) * _OVERHEAD
            self.room = self.room._replace(free=max(0, self.room.free - size))

    @property
    def for_messages(self) -> Room | None:
        """The room without the part that is reserved for making room."""
        if self.room is None:
            return None
        kept = self.room.total // _MAKES_ROOM
        return Room(max(0, self.room.free - kept), self.room.total - kept)

    def spares(self, size: int) -> bool:
        """Whether so many bytes may be written to make room."""
        return self.room is None or self.room.free - size > self.room.total // _SMALL
