"""Records what a committed transaction did in queues that are not served here any more: nobody else knows of it."""

from __future__ import annotations

from itertools import repeat

from services.common.ledger.stages import NO_OWNER, QUEUE_DELETED
from services.queue.host import Host
from services.queue.links.moved import tell_moved
from services.queue.links.open_transaction import HeldEntries
from services.queue.machine.arrival import Arrival
from services.queue.machine.queue import Queue
from services.queue.machine.record import uids_of
from services.rpc import queue_pb2 as pb


def tell_published(host: Host, queue: Queue, arrival: Arrival) -> None:
    """They went with their queue, or, those that are not on disk, with its partition."""
    if not queue.record.on:
        return
    if queue.options.queue_id in host.registry.departed:
        queue.record.dropped(list(arrival.uids), QUEUE_DELETED)
    else:
        parts = arrival.parts or repeat(None)
        uids = [uid for uid, part in zip(arrival.uids, parts, strict=False) if part is None]
        queue.record.dropped(uids, NO_OWNER)


def tell_settled(host: Host, settlement: HeldEntries) -> None:
    """The commit took them from disk, so that the next owner does not find them; of a deleted queue all is told."""
    queue = settlement.queue
    if not queue.record.on or not settlement.staged or queue.options.queue_id in host.registry.departed:
        return
    uids = uids_of(entry for entry in settlement.entries if entry.part is not None)
    if uids and settlement.moved:
        tell_moved(host, queue, settlement.moved)
    elif uids:
        queue.record.settled_for_good(uids, accepted=settlement.outcome == pb.ACCEPT)
