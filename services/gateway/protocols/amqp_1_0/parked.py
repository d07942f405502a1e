"""What waits for the window of a session's peer, in the order in which it was to go out (part 2, section 2.5.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink

Frame: TypeAlias = tuple[bytes, ...]  # in pieces, to be written one behind the other


class Whole(NamedTuple):
    """A delivery of which nothing has gone out: its number, and its message in pieces."""

    link: OutgoingLink
    number: int
    message: Sequence[bytes]


class Rest(NamedTuple):
    """Frames of a delivery that has begun to go out."""

    link: OutgoingLink
    frames: list[Frame]


class Word(NamedTuple):
    """What is to be done when everything before it has gone out."""

    link: OutgoingLink
    say: Callable[[], None]


Waiting: TypeAlias = Whole | Rest | Word


class Parked:
    """Of one session."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, waiting: Iterable[Waiting]) -> None:
        """Behind all that waits."""
        self._waiting.extend(waiting)

    def put_back(self, waiting: Sequence[Waiting]) -> None:
        """Before all that waits."""
        self._waiting.extendleft(reversed(waiting))

    def next(self) -> Waiting:
        """Takes out what comes first."""
        return self._waiting.popleft()

    @property
    def begins_with_word(self) -> bool:
        """Whether what comes first needs no window."""
        return bool(self._waiting) and isinstance(self._waiting[0], Word)

    def holds(self, link: OutgoingLink) -> bool:
        """Whether something of a link waits."""
        return any(each.link is link for each in self._waiting)

    def take_all(self) -> Iterable[Waiting]:
        """Takes out everything."""
        taken, self._waiting = self._waiting, deque()
        return taken

    def drop(self, link: OutgoingLink) -> list[Waiting]:
        """Takes out all that is a link's."""
        its = [each for each in self._waiting if each.link is link]
        if its:
            self._waiting = deque(each for each in self._waiting if each.link is not link)
        return its
