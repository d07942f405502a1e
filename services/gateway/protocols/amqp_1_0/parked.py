"""What waits for the window of a session's peer (part 2, section 2.5.6): in the order of each link, links in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink

Frame: TypeAlias = tuple[bytes, ...]  # in pieces, to be written one behind the other


class Whole(NamedTuple):
    """A delivery of which nothing has gone out: its number, and its message in pieces."""

    number: int
    message: Sequence[bytes]


class Rest(NamedTuple):
    """Frames of a delivery that has begun to go out."""

    frames: list[Frame]


Waiting: TypeAlias = Whole | Rest


class _Lane:
    """Of one link: what waits, a rest only first, and what is to be said behind it."""

    __slots__ = ("waiting", "word")

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.word: Callable[[], None] | None = None


class Parked:
    """Of one session."""

    def __init__(self) -> None:
        self._lanes: dict[OutgoingLink, _Lane] = {}  # that whose turn is next comes first; none is empty
        self._beyond: dict[OutgoingLink, list[Whole]] = {}  # what waits for credit first

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def add(self, link: OutgoingLink, waiting: Iterable[Waiting]) -> None:
        """Behind all that waits of a link."""
        lane = self._lanes.get(link)
        if lane is None:
            lane = self._lanes[link] = _Lane()
        lane.waiting.extend(waiting)

    def say_behind(self, link: OutgoingLink, word: Callable[[], None]) -> bool:
        """Whether something of a link waits: `word` is said behind it then, instead of any other."""
        if lane := self._lanes.get(link):
            lane.word = word
        return lane is not None

    def next(self) -> tuple[OutgoingLink, Waiting]:
        """Takes out what comes first; `went` follows."""
        link = next(iter(self._lanes))
        return link, self._lanes[link].waiting.popleft()

    def went(self, link: OutgoingLink, left: Sequence[Waiting]) -> None:
        """What was taken out has gone out but for what is `left` of it; then it is the turn of another link."""
        lane = self._lanes[link]
        lane.waiting.extendleft(reversed(left))
        if left:
            return
        del self._lanes[link]
        if lane.waiting:
            self._lanes[link] = lane
        elif lane.word:
            lane.word()

    def limit(self, link: OutgoingLink, count: int) -> list[Whole]:
        """A link has credit for so many more: takes out those beyond, unless they cannot go back and wait for it.

        What was to be said behind them is of another credit.
        """
        if beyond := self._beyond.pop(link, None):
            self.add(link, beyond)
        if (lane := self._lanes.get(link)) is None:
            return []
        lane.word = None
        begun = isinstance(lane.waiting[0], Rest)
        taken = [lane.waiting.pop() for _ in range(len(lane.waiting) - begun - count)]
        if not lane.waiting:
            del self._lanes[link]
        beyond = [each for each in reversed(taken) if isinstance(each, Whole)]
        if link.keeps and beyond:
            self._beyond[link] = beyond
        return [] if link.keeps else beyond

    def drop(self, link: OutgoingLink) -> list[Whole]:
        """Takes out all that is a link's; gives the deliveries of which nothing has gone out, and that can go back."""
        beyond, lane = self._beyond.pop(link, []), self._lanes.pop(link, None)
        if link.settled:
            return []
        return [each for each in (*(lane.waiting if lane else ()), *beyond) if isinstance(each, Whole)]

    def drop_all(self) -> list[Whole]:
        """The same of all links."""
        return [whole for link in {**self._lanes, **self._beyond} for whole in self.drop(link)]
