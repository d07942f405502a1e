"""A message's place on one queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from services.common.message.facts import Facts
from services.queue.machine.message import Message

AVAILABLE: Final = 0
ACQUIRED: Final = 1
GONE: Final = 2
ASIDE: Final = 3  # not to be delivered yet
BACK_ASIDE: Final = 4  # the same of what came back: it was shown before
STANDING_ASIDE: Final = frozenset({ASIDE, BACK_ASIDE})
WAITING: Final = STANDING_ASIDE | {AVAILABLE}


class Holder:
    """Whose an acquired entry is; `origin` is the incarnation of the gateway behind it.

    `broken`: nobody listens any more. The gateway may come again and say that it still has the entry.
    """

    broken = False
    over = False  # and nothing is kept for it any more
    moves = False  # what it has is on its way to another queue: nobody was shown it, and it comes back as it left

    def __init__(self, origin: int = 0) -> None:
        self.origin = origin


class Former(Holder):
    """A gateway that had it from the former owner of the partition, and has not said yet that it still has it."""

    broken = True


@dataclass(slots=True, eq=False)
class Undecided:
    """A transaction that keeps what it settles until it is decided; `heirs`, or nobody, have it if that is aborted.

    `origin` is that of its gateway.
    """

    origin: int = 0
    heirs: dict[Entry, object] = field(default_factory=dict)


class JournalPart:
    """Where consecutive entries of a queue stand in the journal: entry batch `batch`, index `position - base`."""

    __slots__ = ("base", "batch")

    def __init__(self, batch: int, base: int) -> None:
        self.batch = batch
        self.base = base


class Entry:
    """State, place and fate so far; `holder` is who may settle it while it is acquired, `next` is its list's affair.

    `attempts` counts deliveries that came back; `expires` is 0 or a Unix time in ms; `part` is None when the entry is
    not on disk.
    """

    __slots__ = ("attempts", "expires", "holder", "message", "next", "part", "position", "state")

    def __init__(
        self,
        message: Message,
        position: int,
        expires: int = 0,
        part: JournalPart | None = None,
        state: int = AVAILABLE,
        holder: object = None,
    ) -> None:
        self.message = message
        self.position = position
        self.expires = expires
        self.part = part
        self.state = state
        self.holder = holder
        self.attempts = 0
        self.next: Entry | None = None

    def taken_out(self) -> Entry:
        """The same by itself. This one keeps the place, and nothing else: neither a state nor a message."""
        entry = Entry(self.message, self.position, self.expires, self.part, ACQUIRED, self.holder)
        entry.attempts = self.attempts
        self.message, self.part, self.state = _NO_MESSAGE, None, GONE
        return entry


_NO_MESSAGE: Final = Message(0, Facts("", "", "", ""), b"", b"")
