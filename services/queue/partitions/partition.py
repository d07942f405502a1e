"""A partition in one term (lease epoch) of this process."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import call
from typing import Protocol

from services.common.containment import for_each
from services.common.ledger.recorder import OFF, Recorder
from services.common.message.indexes import pick
from services.common.partition import lease_name
from services.common.topology.slots import SlotId
from services.queue.journal.known import Known, Taken
from services.queue.machine.context import QueueContext
from services.queue.machine.entry import Entry, Former
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.queue import Queue
from services.queue.observe.journeys import Journeys
from services.rpc import store_pb2

# For gateways to find the new owner and claim what their consumers hold. What is not claimed by then is requeued.
CLAIM_MS = 3000
CLAIM_AT_MOST_MS = 60_000  # while they say so, or what they said waits for its turn


class Prepared(Protocol):
    """A prepared transaction: this process holds a part of it, and does not know yet how it is decided."""

    def ask(self) -> None:
        """Has the store decide it soon: it is aborted unless it was committed."""


class PartitionState(enum.Enum):
    """What may be done for a partition."""

    RECOVERING = "what is for it waits until it has been read back"
    SERVING = "everything"
    LEAVING = "what is for it waits; what was begun may end"
    WRITTEN = "what is for it is refused: the next owner has what there was in the journal"
    GONE = "nothing"


@dataclass(slots=True, eq=False)
class Awaited:
    """Requests that wait for a partition, or for one queue."""

    claiming: list[Callable[[], None]] = field(default_factory=list, kw_only=True)  # attachments with what is held
    waiting: list[Callable[[], None]] = field(default_factory=list, kw_only=True)  # everything else that waits
    recalled: set[tuple[object, SlotId]] = field(default_factory=set, kw_only=True)
    """Links that have not answered yet to the news that a queue leaves."""

    def replay(self) -> None:
        """Carries out, or refuses, what has waited: claims first, so that no other consumer gets what is held."""
        while self.claiming or self.waiting:
            waiting, self.claiming, self.waiting = [*self.claiming, *self.waiting], [], []
            for_each("carrying out what has waited for a partition", waiting, call)


@dataclass(slots=True, eq=False)
class Partition(Awaited):
    """A partition: its queues, and which messages it has taken that may be resent."""

    number: int
    epoch: int
    context: QueueContext
    recorder: Recorder = OFF
    journeys: Journeys | None = None  # of traced messages; None where tracing is off
    state: PartitionState = PartitionState.RECOVERING
    served: float = 0.0  # since when it is (monotonic seconds)
    queues: dict[SlotId, Queue] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    orphans: dict[SlotId, list[Entry]] = field(default_factory=dict)  # of queues that the topology does not know
    notes: dict[SlotId, list[tuple[Note, NotePlace]]] = field(default_factory=dict)  # of features, likewise
    left_out: set[SlotId] = field(default_factory=set)  # queues that could not be given back all that they had
    undecided: set[Prepared] = field(default_factory=set)
    formers: dict[int, Former] = field(default_factory=dict)  # by origin: gateways with the former owner's deliveries …
    claimable_until: int = 0  # … and until when (Unix ms) these are kept for them, …
    claimable_most: int = 0  # … at most

    @property
    def fence(self) -> store_pb2.Fence:
        """The lease and epoch under which it writes."""
        return store_pb2.Fence(lease=lease_name(self.number), epoch=self.epoch)

    def wait_for_claims(self, now: int) -> None:
        """Gateways could not claim for a while: they get the whole time again to claim what they hold."""
        if self.claimable_until:
            self.claimable_until, self.claimable_most = now + CLAIM_MS, now + CLAIM_AT_MOST_MS

    def wait_longer(self, now: int) -> None:
        """They claim yet, of this one or others, and get the whole time again, but not for ever."""
        if self.claimable_until:
            self.claimable_until = max(self.claimable_until, min(now + CLAIM_MS, self.claimable_most))

    def not_safe(self, taken: Taken) -> None:
        """Messages that were taken could not be written: they count as new if they come again."""
        for queue_id, indexes in taken.parts:
            if queue := self.queues.get(queue_id):
                queue.features.not_safe(frozenset(pick(taken.uids, indexes)))
        self.known.not_safe(taken)

    @property
    def waits(self) -> bool:
        """Whether requests for it have to wait."""
        return self.state in (PartitionState.RECOVERING, PartitionState.LEAVING)
