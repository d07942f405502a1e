"""The keys of what came to a queue lately: so many at most, and each for so long.

The queue's messages may be gone long before. Keys of what is persistent are in the journal as notes, the others are
written there when the partition is handed over: the next owner has what this one had.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from struct import Struct
from typing import Final, NamedTuple

from services.common.topology.slots import SlotId
from services.queue.machine import turn
from services.queue.machine.context import QueueContext
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import Holding

_VALUE: Final = Struct("<16sQQ")  # key, uid, until
_IN_MEMORY: Final = 1 << 63  # in `until`: the message was not written with the note
_SIZE: Final = 400  # bytes that one key takes in memory, as measured
_TICK_MS: Final = 1000  # the clock looks no sooner again


class Span(NamedTuple):
    """How far back a window reaches: `most` keys, each for `life_ms`, noted as those of `feature`.

    `anew`: the time begins again with each owner, so that while nobody serves the queue none ends.
    """

    feature: str
    most: int
    life_ms: int
    anew: bool = False


class Seen(NamedTuple):
    """Which message had a key, until when nobody else may (Unix ms), and where the journal says so.

    `safe`: the message was written with the note. The key of one that is in memory alone may be in the journal too.
    """

    uid: int
    until: int
    place: NotePlace | None = None
    safe: bool = False


class Window:
    """Of one queue, which begins to be served at `now`."""

    __slots__ = ("_context", "_former", "_holding", "_now", "_queue_id", "_seen", "_span")

    def __init__(self, span: Span, queue_id: SlotId, context: QueueContext, holding: Holding, now: int) -> None:
        self._span = span
        self._queue_id = queue_id
        self._context = context
        self._holding = holding
        self._now = now
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()
        self._former: dict[bytes, Seen] = {}  # who had keys that others have taken, until `settle`

    @property
    def feature(self) -> str:
        """As Keeper says."""
        return self._span.feature

    def adopt(self, span: Span) -> None:
        """Policies say something else: keys that are known are known as long as was said then, or go if none are."""
        self._span = span
        if self._seen:
            self._context.expect(self._queue_id)

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        return len(self._seen) * _SIZE

    def take(self, key: bytes, uid: int, now: int, *, safe: bool = False) -> bool:
        """Whether this message may have the key: nobody had it lately, or nobody on disk, if it is to be `safe`.

        It has it from now on, unless it gives it up before `settle`: then who had it has it again.
        """
        if (seen := self._seen.get(key)) is not None and seen.until > now and (seen.safe or not safe):
            return seen.uid == uid  # its gateway sends it again: it was lost
        if seen is not None:
            self._former[key] = self._seen.pop(key)
        self._seen[key] = Seen(uid, self.end_of(now))
        self._account(1)
        return True

    def end_of(self, now: int) -> int:
        """Until when somebody has a key who gets it now."""
        return now + self._span.life_ms

    def give_up(self, key: bytes, uid: int) -> None:
        """The message that has the key was not taken after all."""
        if (seen := self._seen.get(key)) is not None and seen.uid == uid:
            self._forget([key])
            if former := self._former.pop(key, None):
                self._seen[key] = former

    def settle(self) -> None:
        """What was taken and not given up stays so."""
        former, self._former = self._former, {}
        self._gone(former.values())

    def not_safe(self, uids: AbstractSet[int]) -> None:
        """These messages could not be written: whoever comes with their keys is taken as well."""
        self._forget([key for key, seen in self._seen.items() if seen.uid in uids])

    def is_new(self, key: bytes, uid: int) -> bool:
        """Whether the message has the key, and the journal does not say so yet."""
        return (seen := self._seen.get(key)) is not None and seen.uid == uid and seen.place is None

    def note(self, key: bytes, uid: int, until: int) -> Note:
        """For the journal."""
        return Note(self._queue_id, self._span.feature, _VALUE.pack(key, uid, until))

    def noted(self, key: bytes, place: NotePlace) -> None:
        """The journal says so now, there."""
        self._seen[key] = self._seen[key]._replace(place=place, safe=True)

    def until(self, key: bytes) -> int:
        """Until when somebody has it."""
        return self._seen[key].until

    def tidy(self, now: int) -> None:
        """Forgets those whose time is over, and the oldest of too many, as many as go in one turn."""
        gone: list[bytes] = []
        over = len(self._seen) - self._span.most
        for key, seen in self._seen.items():
            if (len(gone) >= over and seen.until > now) or len(gone) == turn.AT_ONCE:
                break
            gone.append(key)
        self._forget(gone)

    def deadline(self) -> int:
        """When `tidy` has something to do, or 0."""
        if len(self._seen) > self._span.most:
            return 1
        first = next(iter(self._seen.values()), None)
        return first.until + _TICK_MS if first else 0

    def unwritten(self) -> Iterator[Note]:
        """For the next owner, who does not find them in the journal."""
        its = ((key, seen) for key, seen in self._seen.items() if seen.place is None)
        return (self.note(key, seen.uid, seen.until | _IN_MEMORY) for key, seen in its)

    def recall(self, notes: Iterable[tuple[Note, NotePlace]], entries: object) -> None:  # noqa: ARG002 - the protocol's
        """What a former owner noted."""
        mine = ((*_VALUE.unpack(note.value), place) for note, place in notes if note.feature == self.feature)
        least = self.end_of(self._now) if self._span.anew else 0
        for key, uid, until, place in sorted(mine, key=lambda each: each[2] & ~_IN_MEMORY):
            if key in self._seen:  # the journal was told of a new one before it forgot the old: the last is right
                self._forget([key])
            self._seen[key] = Seen(uid, max(until & ~_IN_MEMORY, least), place, safe=not until & _IN_MEMORY)
            self._account(1)
        if self._seen:
            self._context.expect(self._queue_id)

    def end(self, *, durable: bool) -> None:
        """Gives its memory back; `durable`: the journal forgets it too."""
        if durable:
            self._forget(list(self._seen))
        else:
            self._account(-len(self._seen))
            self._seen.clear()

    def _forget(self, keys: Sequence[bytes]) -> None:
        self._gone([self._seen.pop(key) for key in keys])

    def _gone(self, those: Collection[Seen]) -> None:
        self._context.draft.drop_notes([seen.place for seen in those if seen.place is not None])
        self._account(-len(those))

    def _account(self, count: int) -> None:
        self._context.account.used += count * _SIZE
        self._holding.size += count * _SIZE
