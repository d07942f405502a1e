"""What one link said under one transaction's id, and what a queue process holds for it until it is decided."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.queue.journal.content import Source
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry, Undecided
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.queue import Queue
from services.queue.observe.traced_batch import TracedBatch
from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


def _nobody_asks() -> None:
    """`ask` of a transaction that is not prepared."""


@dataclass(slots=True)
class HeldEntries:
    """Entries of one queue that the transaction settles, and uids of those that are not there yet.

    A client may settle a message that died with the partition's former owner, and that its publisher resends later.
    """

    queue: Queue
    outcome: pb.Outcome.ValueType
    entries: list[Entry]
    coming: list[int]
    staged: bool  # the staged part of the journal dequeues the entries
    said: pb.Settle

    @property
    def moved(self) -> pb.Settle | None:
        """What was asked for, where they were moved."""
        return self.said if self.said.successors else None


@dataclass(slots=True, eq=False)
class OpenTransaction(Undecided):
    """`prepared` from the time when nothing of it can be refused any more, until it is decided."""

    batches: list[tuple[int, Source]] = field(default_factory=list)  # sequence number, and the batch
    settles: list[pb.Settle] = field(default_factory=list)
    copied: pb.Copied | None = None
    publications: list[tuple[Queue, Arrival]] = field(default_factory=list)
    settlements: list[HeldEntries] = field(default_factory=list)
    contents: list[ContentDraft] = field(default_factory=list)
    traced: list[TracedBatch] = field(default_factory=list)
    partitions: dict[Partition, None] = field(default_factory=dict)
    spoiled: str = ""  # why a part that was sent for it was not taken
    alone: bool = False  # no other process takes part
    prepared: bool = False
    ask: Callable[[], None] = _nobody_asks
    asked: bool = False  # the store has been asked for the decision
    patience: asyncio.TimerHandle | None = None
    parts: int = 0  # frames in which it is staged
    size: int = 0  # bytes of memory that its batches take

    def concerns(self, partition: Partition) -> None:
        """The partition is not handed over before the transaction is decided."""
        self.partitions[partition] = None
        partition.undecided.add(self)

    def decided(self) -> None:
        """The transaction is decided: no partition waits for it any more."""
        if self.patience:
            self.patience.cancel()
        for partition in self.partitions:
            partition.undecided.discard(self)

    def returning(self, settlement: HeldEntries, link: PeerLink) -> dict[object, list[Entry]]:
        """The entries still held, by the holder they return to: who claimed them since, who had them, or None."""
        returning: dict[object, list[Entry]] = defaultdict(list)
        for entry in settlement.entries:
            if entry.holder is self:
                returning[self.heirs.get(entry, link)].append(entry)
        return returning
