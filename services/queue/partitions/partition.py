"""A partition in one term of office of this process."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import call
from typing import Protocol

from services.common.containment import for_each
from services.common.ledger.recorder import OFF, Recorder
from services.common.partition import lease_name
from services.queue.journal.known import Known
from services.queue.machine.context import QueueContext
from services.queue.machine.entry import Entry, Former
from services.queue.machine.queue import Queue
from services.queue.observe.journeys import Journeys
from services.rpc import store_pb2


class Prepared(Protocol):
    """A transaction of which this process holds a part, and does not know how it was decided."""

    def ask(self) -> None:
        """Has the store decide it soon: what nobody has committed is aborted."""


class State(enum.Enum):
    """What may be done for a partition."""

    RECOVERING = "what is for it waits until it has been read back"
    SERVING = "everything"
    LEAVING = "what is for it waits; what was begun may end"
    WRITTEN = "what is for it is refused: the next owner has what there was in the journal"
    GONE = "nothing"


@dataclass(slots=True, eq=False)
class Awaited:
    """What waits for a partition, or for one queue."""

    claiming: list[Callable[[], None]] = field(default_factory=list, kw_only=True)  # who comes again, with what is held
    waiting: list[Callable[[], None]] = field(default_factory=list, kw_only=True)  # all else that does
    recalled: set[tuple[object, int]] = field(default_factory=set, kw_only=True)
    """Links that have not heard yet that a queue leaves."""

    def replay(self) -> None:
        """Carries out, or refuses, what has waited: first what is held, so that it is not given to others."""
        while self.claiming or self.waiting:
            waiting, self.claiming, self.waiting = [*self.claiming, *self.waiting], [], []
            for_each("carrying out what has waited for a partition", waiting, call)


@dataclass(slots=True, eq=False)
class Partition(Awaited):
    """Its queues, and what is known of resent messages."""

    number: int
    epoch: int
    context: QueueContext
    recorder: Recorder = OFF
    journeys: Journeys | None = None  # traced messages; none where none ever are
    state: State = State.RECOVERING
    queues: dict[int, Queue] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    orphans: dict[int, list[Entry]] = field(default_factory=dict)  # of queues that the topology does not know
    undecided: set[Prepared] = field(default_factory=set)
    formers: dict[int, Former] = field(default_factory=dict)  # by origin: who had something from the former owner …
    claimable_until: int = 0  # … and until when (Unix ms) it is kept for them

    @property
    def fence(self) -> store_pb2.Fence:
        """Under which it writes."""
        return store_pb2.Fence(lease=lease_name(self.number), epoch=self.epoch)

    @property
    def waits(self) -> bool:
        """Whether what is for it has to wait."""
        return self.state in (State.RECOVERING, State.LEAVING)
