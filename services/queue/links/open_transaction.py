"""What one link said under one transaction's id, and what a queue process holds for it until it is decided."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.queue.journal.content import Source
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry, Holder, Undecided
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.queue import Queue
from services.queue.observe.traced_batch import TracedBatch
from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import Link


def _nobody_asks() -> None:
    """Of one that is not prepared."""


@dataclass(slots=True)
class Settlement:
    """Entries of one queue that the transaction settles, and uids of those that are not there yet.

    A client may hold what its publisher sends again only later, since the former owner of the partition died.
    """

    queue: Queue
    outcome: pb.Outcome.ValueType
    entries: list[Entry]
    coming: list[int]
    staged: bool  # the staged part of the journal dequeues the entries


@dataclass(slots=True, eq=False)
class OpenTransaction(Undecided):
    """`prepared` from when nothing of it can be refused any more until it is decided."""

    batches: list[tuple[int, Source]] = field(default_factory=list)  # sequence, and what it brings
    settles: list[pb.Settle] = field(default_factory=list)
    publications: list[tuple[Queue, Arrival]] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    contents: list[ContentDraft] = field(default_factory=list)
    traced: list[TracedBatch] = field(default_factory=list)
    partitions: dict[Partition, None] = field(default_factory=dict)
    spoiled: str = ""  # why not all that was sent for it is here
    prepared: bool = False
    ask: Callable[[], None] = _nobody_asks
    asked: bool = False  # the store is, or was
    patience: asyncio.TimerHandle | None = None
    parts: int = 0  # frames in which it is staged
    size: int = 0  # bytes of memory that its batches take

    def concerns(self, partition: Partition) -> None:
        """The partition is not handed over before the transaction is decided."""
        self.partitions[partition] = None
        partition.undecided.add(self)

    def decided(self) -> None:
        """Nothing of it is open any more."""
        if self.patience:
            self.patience.cancel()
        for partition in self.partitions:
            partition.undecided.discard(self)

    def returning(self, settlement: Settlement, link: Link) -> dict[object, list[Entry]]:
        """To whom entries go back that it still has: to who has claimed them since, to who had them, or to nobody."""
        returning: dict[object, list[Entry]] = defaultdict(list)
        for entry in settlement.entries:
            if entry.holder is self:
                holder = self.heirs.get(entry, link)
                returning[None if isinstance(holder, Holder) and holder.over else holder].append(entry)
        return returning
