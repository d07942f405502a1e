"""Local transactions as a participant sees them: collected, prepared (held, staged in the journal), then decided.

PREPARE  checks limits, keeps room, takes the settled entries out of everybody's reach and stages the durable part.
COMPLETE applies all of it in memory; the journal has applied it with the store's decision.
ABORT    gives everything back. A transaction whose gateway is gone is decided by asking the store.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common.clock import epoch_ms
from services.common.errors import BrokerError
from services.queue.arrival import Arrival
from services.queue.content import Source
from services.queue.entry import Entry
from services.queue.host import Host
from services.queue.journal_draft import ContentDraft
from services.queue.partition import Partition
from services.queue.publishing import arrivals
from services.queue.queue_type import Queue
from services.queue.traced_batch import TracedBatch
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2

if TYPE_CHECKING:
    from services.queue.link import Link

log = structlog.get_logger()

_RETRY_SECONDS = 0.5


@dataclass(slots=True)
class _Settlement:
    queue: Queue
    outcome: pb.Outcome.ValueType
    entries: list[Entry]
    staged: bool  # the staged part of the journal dequeues them


@dataclass(slots=True, eq=False)
class _Transaction:
    """What one link said under one id; `prepared` once nothing of it can be refused any more."""

    batches: list[tuple[bytes, pb.PublishBatch]] = field(default_factory=list)
    settles: list[pb.Settle] = field(default_factory=list)
    publications: list[tuple[Queue, Arrival]] = field(default_factory=list)
    settlements: list[_Settlement] = field(default_factory=list)
    contents: list[ContentDraft] = field(default_factory=list)
    traced: list[TracedBatch] = field(default_factory=list)
    partitions: set[Partition] = field(default_factory=set)
    prepared: bool = False

    def concerns(self, partition: Partition) -> None:
        """The partition is not handed over before the transaction is decided."""
        self.partitions.add(partition)
        partition.undecided.add(self)

    def decided(self) -> None:
        """Nothing of it is open any more."""
        for partition in self.partitions:
            partition.undecided.discard(self)


class Transactions:
    """Those of one link."""

    def __init__(self, host: Host, link: Link) -> None:
        self._host = host
        self._link = link
        self._open: dict[int, _Transaction] = {}

    def publish(self, raw: bytes, batch: pb.PublishBatch) -> None:
        """Keeps a batch for its transaction."""
        transaction = self._of(batch.transaction)
        transaction.batches.append((raw, batch))
        if batch.traced:
            transaction.traced.append(TracedBatch(self._host, batch))

    def settle(self, settle: pb.Settle) -> None:
        """Keeps a settlement for its transaction."""
        self._of(settle.transaction).settles.append(settle)

    def step(self, step: pb.TransactionStep, now: int) -> None:
        """PREPARE, COMPLETE or ABORT."""
        number = step.transaction
        if step.step == pb.TransactionStep.PREPARE:
            self._prepare(number, now)
            return
        transaction = self._open.pop(number, None)
        if transaction is not None and transaction.prepared:
            self._decide(transaction, now, committed=step.step == pb.TransactionStep.COMPLETE)
        self._link.outbox.frame.completed.append(number)

    def close(self) -> None:
        """The link is gone: what is not prepared is forgotten, the rest is as the store says."""
        transactions, self._open = self._open, {}
        for number, transaction in transactions.items():
            if transaction.prepared:
                self._host.tasks.start(self._resolve(number, transaction), f"resolve transaction {number}")

    def _of(self, number: int) -> _Transaction:
        return self._open.setdefault(number, _Transaction())

    # -------------------------------------------------------------- prepare

    def _prepare(self, number: int, now: int) -> None:
        transaction = self._of(number)
        if awaited := self._awaited(transaction):
            awaited.waiting.append(partial(self._prepare_later, number))
            return
        reason, text = self._hold(transaction)
        if reason != pb.NONE:
            self._open.pop(number)
            self._give_back(transaction, now)
            self._answer(number, transaction, reason=reason, text=text)
            return
        transaction.prepared = True
        self._stage(number, transaction)

    def _prepare_later(self, number: int) -> None:
        if number in self._open:
            self._prepare(number, epoch_ms())

    def _awaited(self, transaction: _Transaction) -> Partition | None:
        runs = [queue_id for _, batch in transaction.batches for run in batch.runs for queue_id in run.queue_ids]
        queue_ids = runs + [settle.queue_id for settle in transaction.settles]
        awaited = (self._host.registry.awaited(queue_id) for queue_id in dict.fromkeys(queue_ids))
        return next((partition for partition in awaited if partition), None)

    def _hold(self, transaction: _Transaction) -> tuple[pb.Reason.ValueType, str]:
        """NONE, or why it cannot be carried out. What is for queues that were deleted meanwhile goes nowhere."""
        registry = self._host.registry
        for raw, batch in transaction.batches:
            content = ContentDraft(self._host.take_id, Source(raw, batch))
            transaction.contents.append(content)
            for arrival, run in arrivals(self._host, batch, content):
                arrival.immediate = False
                for queue_id in run.queue_ids:
                    queue = registry.queues.get(queue_id)
                    if queue is not None:
                        transaction.concerns(registry.partitions[queue.options.partition])
                    if queue is not None and not self._reserve(transaction, queue, arrival):
                        return pb.OVERFLOW, f"queue '{queue.options.name}' is full"
                    if queue is None and registry.missing(queue_id) == pb.NOT_OWNER:
                        return pb.NOT_OWNER, "the partition has another owner"
        for settle in transaction.settles:
            queue = registry.queues.get(settle.queue_id)
            if queue is not None:
                transaction.concerns(registry.partitions[queue.options.partition])
                self._hold_settled(transaction, queue, settle)
            elif registry.missing(settle.queue_id) == pb.NOT_OWNER:
                return pb.NOT_OWNER, "the partition has another owner"
        return pb.NONE, ""

    def _reserve(self, transaction: _Transaction, queue: Queue, arrival: Arrival) -> bool:
        count, options = len(arrival.bodies), queue.options
        if not queue.reserve(count, sum(map(len, arrival.bodies))):
            return False
        transaction.publications.append((queue, arrival))
        if options.durable and arrival.run.persistent:
            place = queue.place(count)
            arrival.content.stage(options.partition, options.queue_id, arrival.first, count, place)
        return True

    def _hold_settled(self, transaction: _Transaction, queue: Queue, settle: pb.Settle) -> None:
        options = queue.options
        # A rejected one stays in the journal until the dead-letter exchange has it.
        ends = settle.outcome == pb.ACCEPT or (settle.outcome == pb.REJECT and options.dead_letter_exchange is None)
        entries = queue.hold(settle.uids, transaction)
        transaction.settlements.append(_Settlement(queue, settle.outcome, entries, ends))

    def _stage(self, number: int, transaction: _Transaction) -> None:
        partitions = self._host.registry.partitions
        contents = [content for content in transaction.contents if content.entries]
        fences = {number: partitions[number] for content in contents for number in content.entries}
        dequeues: dict[int, list[int]] = {}
        for settlement in transaction.settlements:
            parts = [entry for entry in settlement.entries if entry.part is not None] if settlement.staged else []
            for entry in parts:
                assert entry.part is not None
                dequeues.setdefault(entry.part.batch, []).append(entry.position - entry.part.base)
            if parts:
                fences[settlement.queue.options.partition] = partitions[settlement.queue.options.partition]
        if not fences:
            self._answer(number, transaction)
            return
        staged = self._host.writer.stage(number, contents, dequeues, list(fences.values()))
        staged.add_done_callback(partial(self._staged, number, transaction))

    def _staged(self, number: int, transaction: _Transaction, answer: asyncio.Future[store_pb2.JournalAck]) -> None:
        failed = answer.cancelled() or answer.exception() is not None
        if not failed and not answer.result().fenced:
            self._answer(number, transaction, durable=True)
        elif self._open.pop(number, None):
            self._give_back(transaction, epoch_ms())
            self._answer(number, transaction, reason=pb.UNAVAILABLE if failed else pb.NOT_OWNER)

    def _answer(
        self,
        number: int,
        transaction: _Transaction,
        *,
        durable: bool = False,
        reason: pb.Reason.ValueType = pb.NONE,
        text: str = "",
    ) -> None:
        frame = self._link.outbox.frame
        frame.done.extend([batch.sequence for _, batch in transaction.batches])
        frame.prepared.add(transaction=number, durable=durable, reason=reason, text=text)

    # -------------------------------------------------------------- the decision

    def _decide(self, transaction: _Transaction, now: int, *, committed: bool) -> None:
        transaction.decided()
        if not committed:
            self._give_back(transaction, now)
            return
        for queue, arrival in transaction.publications:
            if self._is_served(queue):
                queue.publish(arrival, now, reserved=True)
                if queue.record.on and queue.options.durable and arrival.run.persistent:
                    queue.record.persisted(arrival.span(0, len(arrival.uids)))
        for traced in transaction.traced:
            traced.done()
        for settlement in transaction.settlements:
            if self._is_served(settlement.queue):
                settlement.queue.settle_held(settlement.outcome, settlement.entries, now, staged=settlement.staged)

    def _give_back(self, transaction: _Transaction, now: int) -> None:
        transaction.decided()
        for traced in transaction.traced:
            traced.aborted()
        for queue, arrival in transaction.publications:
            queue.unreserve(len(arrival.bodies), sum(map(len, arrival.bodies)))
        holder = None if self._link.broken else self._link
        for settlement in transaction.settlements:
            if self._is_served(settlement.queue):
                settlement.queue.unhold(settlement.entries, holder, now)

    def _is_served(self, queue: Queue) -> bool:
        """Not deleted, and not handed over, since it was prepared."""
        return self._host.registry.settling(queue.options.queue_id) is queue

    async def _resolve(self, number: int, transaction: _Transaction) -> None:
        while True:
            try:
                outcome = await self._host.store.resolve_transaction(number)
            except BrokerError as failure:
                log.info("outcome of a transaction not known yet", transaction=number, reason=failure.text)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._decide(transaction, epoch_ms(), committed=outcome.committed)
                return
