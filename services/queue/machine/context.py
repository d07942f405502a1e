"""What queues of one partition share, and what they leave there for the shell to carry out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from services.common.topology.slots import SlotId
from services.queue.machine.entry import Entry
from services.queue.machine.features.sent_on import UNSENT, Sent
from services.queue.machine.journal_draft import NotePlace, PartitionDraft
from services.queue.machine.message import Holding, MemoryAccount
from services.queue.machine.options import QueueOptions
from services.queue.machine.record import QueueRecord, silent

# Reasons as x-death names them.
REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
MAXLEN: Final = "maxlen"
DELIVERY_LIMIT: Final = "delivery_limit"


class DeadLetter(NamedTuple):
    """An entry that left its queue for the dead-letter exchange; it stays in memory and on disk until that has it.

    So do `notes`, such as of the attempts that failed: the next owner must not give it to consumers again. `sent`: what
    its former owner knew of queues that have it.
    """

    queue: QueueOptions
    entry: Entry
    reason: str
    time_ms: int
    holding: Holding
    notes: tuple[NotePlace, ...] = ()
    sent: Sent = UNSENT


class QueueContext:
    """The process's memory account; the partition's journal draft, unopened dead letters, queues with deadlines."""

    __slots__ = (
        "account",
        "dead_letters",
        "draft",
        "epoch",
        "on_early",
        "on_more",
        "on_timed",
        "record_of",
        "timed",
        "traffic",
        "wake",
    )

    def __init__(
        self,
        account: MemoryAccount,
        draft: PartitionDraft,
        wake: Callable[[], None],
        record_of: Callable[[QueueOptions], QueueRecord] = silent,
        epoch: int = 0,
    ) -> None:
        """`wake` is called when the first dead letter is left; `epoch` is the partition's.

        `record_of` gives what a queue of the partition tells the ledger.
        """
        self.account = account
        self.draft = draft
        self.wake = wake
        self.record_of = record_of
        self.epoch = epoch
        self.dead_letters: deque[DeadLetter] = deque()
        self.traffic = 0  # messages that came, and deliveries, ever
        self.timed: set[SlotId] = set()  # queues that have something to do by the clock
        self.on_timed: Callable[[], None] = _nobody_watches
        self.on_more: Callable[[SlotId], None] = _nobody_looks  # more waits in a queue that holds publishers back
        self.on_early: Callable[[], None] = _nobody_watches  # something was settled that is to come again yet

    def expect(self, queue_id: SlotId) -> None:
        """A queue has something to do by the clock, sooner than it had perhaps."""
        self.timed.add(queue_id)
        self.on_timed()

    def bury(self, letters: list[DeadLetter]) -> None:
        """Leaves dead letters for the shell."""
        if not self.dead_letters:
            self.wake()
        self.dead_letters += letters
        for letter in letters:
            letter.holding.buries(letter.entry)

    def sent(self, letter: DeadLetter, place: NotePlace | None, *, durable: bool) -> None:
        """A dead letter is done with, and so is what the journal says at `place` of who has it."""
        letter.holding.buried(letter.entry)
        self.forget([letter.entry], letter.holding, durable=durable)
        if durable:
            self.draft.drop_notes([*letter.notes, place] if place else letter.notes)

    def forget(self, entries: list[Entry], holding: Holding, *, durable: bool) -> None:
        """Entries that are done with: gives their memory back, and dequeues those that are on disk."""
        self.account.let_go(entries, holding)
        if durable:
            self.draft.dequeue(entries)


def _nobody_watches() -> None:
    """Of queues without a shell."""


def _nobody_looks(_: SlotId) -> None:
    """The same."""
