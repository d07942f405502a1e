"""What PREPARE does with queues: room is reserved for what is published, and what is settled is held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.clients.link_frame import outcome_of
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.links.changes import no_room
from services.queue.links.open_transaction import HeldEntries, OpenTransaction
from services.queue.links.publishing import arrivals
from services.queue.machine.arrival import Arrival
from services.queue.machine.claims import FINAL
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

_MISSING: Mapping[int, str] = {
    pb.NOT_OWNER: "the partition has another owner",
    pb.OTHER: "a queue cannot be served",
}


def hold(host: Host, link: PeerLink, transaction: OpenTransaction) -> tuple[pb.Reason.ValueType, str]:
    """NONE, or why it cannot be carried out. Messages for queues deleted meanwhile are dropped."""
    registry = host.registry
    if transaction.spoiled:
        return pb.OTHER, transaction.spoiled
    for _, source in transaction.batches:
        content = ContentDraft(host.take_id, source)
        transaction.contents.append(content)
        for queue_id, arrival, _ in arrivals(source.columns, content):
            arrival.immediate = False
            queue = registry.queues.get(queue_id)
            if queue is not None:
                transaction.concerns(registry.partitions[queue.options.partition])
            if queue is not None and not _reserve(host, transaction, queue, arrival):
                return pb.OVERFLOW, f"queue '{queue.options.name}' is full"
            if queue is None and (missing := registry.missing(queue_id)) != pb.UNKNOWN_QUEUE:
                return missing, _MISSING[missing]
    return _hold_all_settled(host, link, transaction)


def _hold_all_settled(host: Host, link: PeerLink, transaction: OpenTransaction) -> tuple[pb.Reason.ValueType, str]:
    registry = host.registry
    for settle in transaction.settles:
        queue = registry.queues.get(queue_id := SlotId(settle.queue_id))
        if queue is not None:
            transaction.concerns(registry.partitions[queue.options.partition])
            if too_much := _hold_settled(link, transaction, queue, settle) or no_room(host, settle):
                return pb.OTHER, too_much
        elif (missing := registry.missing(queue_id)) != pb.UNKNOWN_QUEUE:
            return missing, _MISSING[missing]
    return pb.NONE, ""


def _reserve(host: Host, transaction: OpenTransaction, queue: Queue, arrival: Arrival) -> bool:
    count, options = len(arrival), queue.options
    if not queue.transacted.reserve(count, sum(map(len, arrival.bodies))):
        return False
    transaction.publications.append((queue, arrival))
    arrival.place = queue.transacted.place(count)
    if options.durable:
        parts = arrival.enlist(options, 0, count, arrival.place)
        arrival.parts = parts if any(parts) else None
        queue.transacted.stage(arrival, host.now())
    return True


def _hold_settled(link: PeerLink, transaction: OpenTransaction, queue: Queue, settle: pb.Settle) -> str:
    """Why they cannot be settled so, if they cannot."""
    options = queue.options
    # A rejected entry stays in the journal until its dead letter has arrived.
    ends = settle.outcome == pb.ACCEPT or (settle.outcome == pb.REJECT and options.dead_letter_exchange is None)
    uids = settle.uids if settle.outcome in FINAL else queue.not_others(settle.uids, link)
    entries, coming = queue.transacted.hold(uids, transaction)
    outcome = outcome_of(settle)
    transaction.settlements.append(HeldEntries(queue, outcome, entries, coming, ends, settle))
    return queue.modifying.too_much(entries, settle.annotations)
