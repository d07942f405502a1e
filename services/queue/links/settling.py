"""What became of deliveries, said to their queue: at once, when its partition is served, or by its next owner.

What is given back may be said together with the claim for it, and is heard when that is carried out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from services.common.clients.link_frame import outcome_of
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.links.changes import is_changed, no_room, settle_changed
from services.queue.links.outbox import Outbox
from services.queue.machine.claims import FINAL
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


def settle(host: Host, holder: PeerLink, outbox: Outbox, said: pb.Settle, now: int) -> None:
    """`holder` had been given them; `outbox` is its gateway's, which hears of those that come too late."""
    queue_id = SlotId(said.queue_id)
    queue = host.registry.settling(queue_id)
    if queue is not None:
        if said.outcome in FINAL or not _waits(host, holder, outbox, queue, said):
            _settle_in(host, holder, queue, said, now)
    elif waiting := host.registry.awaited(queue_id):
        waiting.waiting.append(partial(_settle_later, host, holder, outbox, said))
    elif (partition := host.registry.partition_of(queue_id)) and partition.state is PartitionState.WRITTEN:
        outbox.frame.unsettled.append(said)


def _waits(host: Host, holder: PeerLink, outbox: Outbox, queue: Queue, said: pb.Settle) -> bool:
    """Whether what is given back is claimed first."""
    return host.claims.give_back(queue, holder, partial(_settle_now, host, holder, outbox, said))


def _settle_in(host: Host, holder: PeerLink, queue: Queue, said: pb.Settle, now: int) -> None:
    outcome = outcome_of(said)
    uids = _its(host, holder, queue, said)
    if not is_changed(said):
        queue.settle(outcome, uids, now)
    else:
        settle_changed(host, holder, queue, said, partial(queue.settle, outcome, uids, now), no_room(host, said))


def _settle_later(host: Host, holder: PeerLink, outbox: Outbox, said: pb.Settle) -> None:
    """Much may have waited. What is given back goes before what is delivered next, as it does elsewhere."""
    if said.outcome in FINAL:
        late = host.late.begin(holder)
        host.turns.do(len(said.uids), partial(_settle_at_last, host, holder, outbox, said, late))
    else:
        _settle_now(host, holder, outbox, said)


def _settle_at_last(host: Host, holder: PeerLink, outbox: Outbox, said: pb.Settle, late: int) -> None:
    host.late.over(late)
    _settle_now(host, holder, outbox, said)


def _settle_now(host: Host, holder: PeerLink, outbox: Outbox, said: pb.Settle) -> None:
    settle(host, holder, outbox, said, host.now())


def _its(host: Host, holder: PeerLink, queue: Queue, said: pb.Settle) -> list[int]:
    """Without those that others have been given since, unless it does not matter who says it."""
    if said.outcome in FINAL:
        return list(said.uids)
    return queue.not_others(said.uids, holder) if host.registry.is_in(queue, said.term) else []
