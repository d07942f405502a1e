"""Local transactions as a participant sees them: collected, prepared (held, staged in the journal), then decided.

PREPARE  checks limits, reserves room, holds the settled entries for the transaction and stages the durable part. When
         no other process takes part, and that is one frame, the store commits it, and what follows is as COMPLETE.
COMPLETE applies all of it in memory; the journal has applied it with the store's decision.
ABORT    gives everything back.

The store is asked when the link is gone, when a connected gateway sends no decision for too long, and when a partition
is to leave: the next owner would not have the part that is not on disk. Asking decides: an undecided transaction is
aborted. So a gateway has time for all processes to prepare, and, when the store was away, for its commit to come before
the question. Once the store is asked, only its answer counts: a gateway that asks this process to decide, as the only
participant, is told that nothing is held any more, and asks the store itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common.containment import contained, for_each
from services.common.errors import BrokerError
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.journal.content import Source
from services.queue.journal.ticket import Receipt
from services.queue.links.changes import is_changed, settle_changed
from services.queue.links.frames_answered import acks_of, refusal_in, why_not
from services.queue.links.holding import hold
from services.queue.links.left_meanwhile import tell_published, tell_settled
from services.queue.links.moved import tell_copied, tell_moved
from services.queue.links.open_transaction import HeldEntries, OpenTransaction
from services.queue.machine.arrival import Arrival
from services.queue.machine.claims import FINAL
from services.queue.machine.entry import Entry
from services.queue.machine.modifying import UNCHANGED, Change
from services.queue.machine.queue import Queue
from services.queue.machine.record import uids_of
from services.queue.observe.traced_batch import TracedBatch
from services.queue.partitions.partition import Awaited
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

log = structlog.get_logger()

_RETRY_SECONDS = 0.5
_UNTOLD_SECONDS = 40.0  # longer than a gateway waits for all to prepare
_COPIES = 3  # of a batch: as it came, decoded, and as bodies by themselves


class Transactions:
    """The transactions of one link."""

    def __init__(self, host: Host, link: PeerLink) -> None:
        self._host = host
        self._link = link
        self._open: dict[int, OpenTransaction] = {}

    def publish(self, batch: pb.PublishBatch, source: Source) -> None:
        """Keeps a batch for its transaction."""
        source.raw = bytes(source.raw)  # and nothing more of the frame that it came in: it may be kept for long
        transaction = self._of(batch.transaction)
        transaction.batches.append((batch.sequence, source))
        size = _COPIES * source.size
        transaction.size += size
        self._host.account.used += size
        if source.traced:
            transaction.traced.append(TracedBatch(self._host, source))

    def spoil(self, number: int, text: str) -> None:
        """Part of a transaction was not taken, for this reason: the rest is not carried out without it."""
        self._of(number).spoiled = text or "a batch of it was not taken"

    def settle(self, settle: pb.Settle) -> None:
        """Keeps a settlement for its transaction."""
        self._of(settle.transaction).settles.append(settle)

    def step(self, step: pb.TransactionStep, now: int) -> None:
        """Carries out PREPARE, COMPLETE or ABORT. A fault in the last two ends the link: both sides ask the store."""
        number = step.transaction
        if step.HasField("copied"):
            self._of(number).copied = step.copied
        if step.step == pb.TransactionStep.PREPARE:
            self._of(number).alone = step.alone
            self._try_to_prepare(number, now)
        elif step.step == pb.TransactionStep.COMPLETE:
            self._complete(number, now)
        else:
            self._abort(number, now)

    def _complete(self, number: int, now: int) -> None:
        transaction = self._open.get(number)
        if transaction is None or not transaction.prepared:
            self._not_held(number)
            self._safe_soon(number)
        elif not transaction.asked or transaction.parts:  # with parts, it is the store that has committed it
            self._conclude(number, transaction, now, committed=True)
            self._carried_out(number)

    def _abort(self, number: int, now: int) -> None:
        if transaction := self._open.get(number):
            prepared = transaction.prepared
            self._conclude(number, transaction, now, committed=False)
            if prepared:
                self._forget_staged(number, transaction)
        self._link.outbox.frame.completed.append(number)

    def _carried_out(self, number: int) -> None:
        self._link.outbox.frame.completed.append(number)
        self._safe_soon(number)

    def _safe_soon(self, number: int) -> None:
        """As with other settlements: a message that is not on disk is resent as long as its batch is not done."""
        self._host.safe_soon(Receipt(partial(self._link.outbox.safe, number)))

    def _not_held(self, number: int) -> None:
        self._link.outbox.frame.prepared.add(transaction=number, reason=pb.UNAVAILABLE)

    def _conclude(self, number: int, transaction: OpenTransaction, now: int, *, committed: bool) -> None:
        """Applies the decision once, whether the gateway or the store says it first."""
        self._open.pop(number, None)
        self._release(transaction)
        if transaction.prepared:
            transaction.prepared = False
            self._decide(transaction, now, committed=committed)

    def close(self) -> None:
        """The link is gone: unprepared transactions are forgotten, the store is asked about prepared ones."""
        transactions, self._open = self._open, {}
        for number, transaction in transactions.items():
            self._release(transaction)
            if transaction.prepared:
                self._ask(number, transaction)

    def _release(self, transaction: OpenTransaction) -> None:
        """Its batches are the queues' from now on, or dropped: gives back the memory accounted for them."""
        self._host.account.used -= transaction.size
        transaction.size = 0

    def _of(self, number: int) -> OpenTransaction:
        found = self._open.get(number)
        if found is None:
            found = self._open[number] = OpenTransaction(self._link.origin)
        return found

    # -------------------------------------------------------------- prepare

    def _try_to_prepare(self, number: int, now: int) -> None:
        for_each("preparing a transaction", (number,), partial(self._prepare, now=now), self._not_prepared)

    def _not_prepared(self, number: int, error: BrokerError) -> None:
        transaction = self._open.get(number)
        if transaction and transaction.prepared and transaction.alone:
            self._ask(number, transaction)  # what was written of it may have decided
            return
        if transaction := self._open.pop(number, None):
            self._release(transaction)
            self._give_back(transaction, self._host.now())
        self._link.outbox.frame.prepared.add(transaction=number, reason=pb.OTHER, text=error.text)

    def _prepare(self, number: int, now: int) -> None:
        transaction = self._of(number)
        if awaited := self._awaited(transaction):
            awaited.waiting.append(partial(self._prepare_later, number))
            return
        reason, text = hold(self._host, self._link, transaction)
        if reason != pb.NONE:
            self._open.pop(number)
            self._release(transaction)
            self._give_back(transaction, now)
            self._answer(number, transaction, reason, text)
            return
        if transaction.copied and (queue := self._host.registry.queues.get(SlotId(transaction.copied.queue_id))):
            transaction.concerns(self._host.registry.partitions[queue.options.partition])  # its owner tells of it
        transaction.prepared = True
        transaction.ask = partial(self._ask, number, transaction)
        self._stage(number, transaction)

    def _prepare_later(self, number: int) -> None:
        if number in self._open:
            self._try_to_prepare(number, self._host.now())

    def _awaited(self, transaction: OpenTransaction) -> Awaited | None:
        published = [queue_id for _, source in transaction.batches for queue_id, _ in source.columns.queues]
        queue_ids = published + [SlotId(settle.queue_id) for settle in transaction.settles]
        registry, claims = self._host.registry, self._host.claims
        for queue_id in dict.fromkeys(queue_ids):
            if found := registry.awaited(queue_id) or claims.awaited(registry.queues.get(queue_id)):
                return found
        return None

    def _stage(self, number: int, transaction: OpenTransaction) -> None:
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
            self._is_prepared(number, transaction)
            return
        frames = self._host.writer.stage(number, contents, dequeues, list(fences.values()), alone=transaction.alone)
        transaction.parts = len(frames)
        staged = frames[0] if len(frames) == 1 else asyncio.gather(*frames, return_exceptions=True)
        staged.add_done_callback(partial(self._or_end, partial(self._staged, number, transaction)))

    def _staged(
        self,
        number: int,
        transaction: OpenTransaction,
        answer: asyncio.Future[store_pb2.JournalAck] | asyncio.Future[list[store_pb2.JournalAck | BaseException]],
    ) -> None:
        acks = acks_of(answer)
        failures = [ack for ack in acks if isinstance(ack, BaseException)]
        stored = [ack for ack in acks if isinstance(ack, store_pb2.JournalAck)]
        if any(ack.HasField("committed") for ack in stored):
            self._decided(number, transaction, committed=all(ack.committed for ack in stored))
        elif stored and not failures and not any(ack.fenced for ack in stored):
            self._is_prepared(number, transaction)
        elif transaction.alone and not stored and not refusal_in(failures):
            self._ask(number, transaction)  # nobody has said whether it was decided
        elif self._open.pop(number, None):
            self._release(transaction)
            self._give_back(transaction, self._host.now())
            self._forget_staged(number, transaction)
            transaction.prepared, transaction.parts = False, 0
            reason, text = why_not(failures) if failures or not acks else (pb.NOT_OWNER, "")
            self._answer(number, transaction, reason, text)

    def _forget_staged(self, number: int, transaction: OpenTransaction) -> None:
        """Has the store abort the transaction: the store keeps staged parts until the decision."""
        if transaction.parts:
            self._host.tasks.start(self._abort_staged(number), f"abort transaction {number}")

    async def _abort_staged(self, number: int) -> None:
        with suppress(BrokerError):
            await self._host.store.resolve_transaction(number)

    def _is_prepared(self, number: int, transaction: OpenTransaction) -> None:
        self._answer(number, transaction, pb.NONE, "")
        self._await_decision(number, transaction)

    def _answer(self, number: int, transaction: OpenTransaction, reason: pb.Reason.ValueType, text: str) -> None:
        frame = self._link.outbox.frame
        frame.done.extend([sequence for sequence, _ in transaction.batches])
        frame.prepared.add(transaction=number, parts=transaction.parts, reason=reason, text=text)

    # -------------------------------------------------------------- the decision

    def _decide(self, transaction: OpenTransaction, now: int, *, committed: bool) -> None:
        transaction.decided()
        if not committed:
            self._give_back(transaction, now)
            return
        # It is committed: a fault in one part must not keep the others from being carried out.
        if transaction.copied:
            tell_copied(self._host, transaction.copied)
        for_each("publishing of a transaction", transaction.publications, partial(self._commit, now=now))
        for_each("telling of a traced transaction", transaction.traced, TracedBatch.done)
        settle = partial(self._commit_settled, transaction, now=now)
        for_each("settling of a transaction", transaction.settlements, settle)

    def _commit(self, publication: tuple[Queue, Arrival], now: int) -> None:
        queue, arrival = publication
        if not self._is_served(queue):
            tell_published(self._host, queue, arrival)
            return
        refused = queue.publish(arrival, now, reserved=True)
        if queue.record.on and arrival.parts:
            gone = {at for first, count, _ in refused for at in range(first, first + count)}
            rows = enumerate(zip(arrival.uids, arrival.parts, strict=True))
            queue.record.persisted([uid for at, (uid, part) in rows if part is not None and at not in gone])

    def _commit_settled(self, transaction: OpenTransaction, settlement: HeldEntries, now: int) -> None:
        entries, coming = settlement.entries, settlement.coming
        if settlement.outcome not in FINAL:
            # What the gateway has given back meanwhile may have another holder.
            entries = [entry for entry in entries if entry.holder is transaction]
            coming = settlement.queue.transacted.still(coming, transaction)
        if self._is_served(settlement.queue):
            if settlement.moved:
                tell_moved(self._host, settlement.queue, settlement.moved)
                settlement.queue.transacted.moved(entries, now, staged=settlement.staged)
                settlement.queue.transacted.settle_coming(settlement.outcome, settlement.coming, transaction, now)
            elif is_changed(settlement.said):
                settle = partial(_settle, transaction, settlement, entries, now)
                settle_changed(self._host, self._link, settlement.queue, settlement.said, settle)
            else:
                _settle(transaction, settlement, entries, now, UNCHANGED)
        else:
            # The commit counts at the next owner too, which does not know of it: the gateway tells it.
            tell_settled(self._host, settlement)
            unsettled = self._link.outbox.frame.unsettled.add()
            unsettled.CopyFrom(settlement.said)
            unsettled.uids[:] = uids_of(entries) + coming

    def _give_back(self, transaction: OpenTransaction, now: int) -> None:
        transaction.decided()
        for traced in transaction.traced:
            traced.aborted()
        for queue, arrival in transaction.publications:
            queue.transacted.unreserve(len(arrival.bodies), sum(map(len, arrival.bodies)))
        for settlement in transaction.settlements:
            if self._is_served(settlement.queue):
                settlement.entries += settlement.queue.transacted.let_go(settlement.coming, transaction)
                for holder, entries in transaction.returning(settlement, self._link).items():
                    settlement.queue.transacted.unhold(entries, holder, now)

    def _is_served(self, queue: Queue) -> bool:
        """Whether the queue was neither deleted nor handed over since the transaction was prepared."""
        return self._host.registry.settling(queue.options.queue_id) is queue

    # -------------------------------------------------------------- the decision does not come

    def _await_decision(self, number: int, transaction: OpenTransaction) -> None:
        if transaction.prepared and number in self._open:
            overdue = partial(self._overdue, number, transaction)
            transaction.patience = asyncio.get_running_loop().call_later(_UNTOLD_SECONDS, overdue)

    def _overdue(self, number: int, transaction: OpenTransaction) -> None:
        if number not in self._open:
            return
        if self._host.certain:
            log.info("nobody says how a transaction was decided", transaction=number, gateway=self._link.name)
            self._ask(number, transaction)
        else:
            # The store may be away, and the gateway waits for it as well: the gateway's decision comes first.
            self._host.when_certain(partial(self._await_decision, number, transaction))

    def _ask(self, number: int, transaction: OpenTransaction) -> None:
        if not transaction.asked:
            transaction.asked = True
            self._host.tasks.start(self._resolve(number, transaction), f"resolve transaction {number}")

    async def _resolve(self, number: int, transaction: OpenTransaction) -> None:
        while transaction.prepared:
            try:
                outcome = await self._host.store.resolve_transaction(number)
            except BrokerError as failure:
                log.info("outcome of a transaction not known yet", transaction=number, reason=failure.text)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._decided(number, transaction, committed=outcome.committed)
                return

    def _decided(self, number: int, transaction: OpenTransaction, *, committed: bool) -> None:
        resolved = partial(self._resolved, number, transaction, committed=committed)
        self._host.when_certain(partial(self._or_end, resolved))

    def _or_end(self, action: Callable[..., None], *answer: object) -> None:
        """Carries out what the store has said. A fault ends the link, as in a frame: its gateway would wait."""
        try:
            action(*answer)
        except Exception as fault:  # noqa: BLE001 - whatever it is
            error = contained("carrying out what the store has decided", fault)
            if not self._link.broken:
                self._link.fail(error)

    def _resolved(self, number: int, transaction: OpenTransaction, *, committed: bool) -> None:
        if not transaction.prepared:
            return
        self._conclude(number, transaction, self._host.now(), committed=committed)
        self._host.check_full()
        if committed:
            self._carried_out(number)
        else:
            self._not_held(number)


def _settle(
    transaction: OpenTransaction, settlement: HeldEntries, entries: list[Entry], now: int, change: Change
) -> str:
    """What is here, and what is to come; as Queue.settle gives it."""
    its, outcome = settlement.queue.transacted, settlement.outcome
    held = its.settle_held(outcome, entries, now, change, staged=settlement.staged)
    return its.settle_coming(outcome, settlement.coming, transaction, now, change) or held
