"""Records that messages were moved or copied to another queue: there each is a message of its own."""

from __future__ import annotations

from services.common.ledger.place import LedgerPlace
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.machine.queue import Queue
from services.rpc.ledger_pb2 import ROUTED
from services.rpc.queue_pb2 import Copied, Settle


def tell_moved(host: Host, queue: Queue, moved: Settle) -> None:
    """Their transaction is committed, and `queue` is where they were."""
    if queue.record.on:
        successors = range(moved.successors, moved.successors + len(moved.uids))
        queue.record.moved(list(moved.uids), _routed(host, SlotId(moved.moved_to), successors), successors)


def tell_copied(host: Host, copied: Copied) -> None:
    """The same of those that stay where they are; nothing where this process does not have their queue any more."""
    queue = host.registry.queues.get(SlotId(copied.queue_id))
    if queue is not None and queue.record.on:
        successors = range(copied.successors, copied.successors + len(copied.uids))
        queue.record.copied(list(copied.uids), _routed(host, SlotId(copied.copied_to), successors), successors)


def _routed(host: Host, queue_id: SlotId, uids: range) -> str:
    """Says that these went to a queue; gives its name, or "" where it is gone."""
    if (definition := host.registry.definitions.get(queue_id)) is None:
        return ""
    place = LedgerPlace(definition.virtual_host, queue=definition.name, partition=definition.partition)
    host.recorder.record(ROUTED, place, uids)
    return definition.name
