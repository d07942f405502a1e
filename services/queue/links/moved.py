"""Records that messages were moved to another queue: each goes on as a message of its own, as a dead letter does."""

from __future__ import annotations

from services.common.ledger.place import LedgerPlace
from services.queue.host import Host
from services.queue.machine.queue import Queue
from services.rpc.ledger_pb2 import ROUTED
from services.rpc.queue_pb2 import Settle


def tell_moved(host: Host, queue: Queue, moved: Settle) -> None:
    """Their transaction is committed, and `queue` is where they were."""
    if not queue.record.on:
        return
    successors = range(moved.successors, moved.successors + len(moved.uids))
    definition = host.registry.definitions.get(moved.moved_to)
    queue.record.moved(list(moved.uids), definition.name if definition else "", successors)
    if definition:
        place = LedgerPlace(definition.virtual_host, queue=definition.name, partition=definition.partition)
        host.recorder.record(ROUTED, place, successors)
