"""What became of deliveries, said to their queue: at once, when its partition is served, or by its next owner.

What is given back may be said together with the claim for it, and is heard when that is carried out. The receipt of a
frame comes behind all of it: until then its gateway keeps it for the next owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from services.common.clients.link_frame import outcome_of
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.journal.ticket import Receipt
from services.queue.links.changes import is_changed, no_room, settle_changed
from services.queue.links.outbox import Outbox
from services.queue.links.parts import Span, cut, spans_of, work_of
from services.queue.machine.claims import FINAL
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


def settle(host: Host, holder: PeerLink, outbox: Outbox, said: pb.Settle, now: int, receipt: Receipt) -> None:
    """`holder` had been given them; `outbox` is its gateway's, which hears of those that come too late.

    `receipt` is that of their frame.
    """
    queue_id, later = SlotId(said.queue_id), _Later(host, holder, outbox, said, receipt)
    queue = host.registry.settling(queue_id)
    if queue is not None:
        if said.outcome in FINAL or not _waits(host, queue, later):
            _settle_in(host, holder, queue, said, now)
    elif waiting := host.registry.awaited(queue_id):
        waiting.waiting.append(later.settle)
        receipt.pending += 1
    elif (partition := host.registry.partition_of(queue_id)) and partition.state is PartitionState.WRITTEN:
        outbox.frame.unsettled.append(said)


def _waits(host: Host, queue: Queue, later: _Later) -> bool:
    """Whether what is given back is claimed first: what is not found yet would stay its holder's for ever."""
    if awaited := later.holder.awaiting.claim_of(queue.options.queue_id):
        awaited.waiting.append(later.settle)
    elif not host.claims.give_back(queue, later.holder, later.settle_in_turns):
        return False
    later.receipt.pending += 1
    return True


def _settle_in(host: Host, holder: PeerLink, queue: Queue, said: pb.Settle, now: int) -> None:
    outcome = outcome_of(said)
    uids = _its(host, holder, queue, said)
    if not is_changed(said):
        queue.settle(outcome, uids, now)
    else:
        settle_changed(host, holder, queue, said, partial(queue.settle, outcome, uids, now), no_room(host, said))


def _its(host: Host, holder: PeerLink, queue: Queue, said: pb.Settle) -> list[int]:
    """Without those that others have been given since, unless it does not matter who says it."""
    if said.outcome in FINAL:
        return list(said.uids)
    return queue.not_others(said.uids, holder) if host.registry.is_in(queue, said.term) else []


@dataclass(slots=True)
class _Later:
    """One that waits: its receipt has a part for it."""

    host: Host
    holder: PeerLink
    outbox: Outbox
    said: pb.Settle
    receipt: Receipt

    def settle(self) -> None:
        """Much may have waited. What is given back goes before what is delivered next, as it does elsewhere."""
        if self.said.outcome in FINAL:
            late = self.host.late.begin(self.holder)
            self.host.turns.do(len(self.said.uids), partial(self._settle_at_last, late))
        else:
            self._settle_and_tell()

    def settle_in_turns(self) -> None:
        """Part by part, behind what has its turn already; nothing is delivered before, whatever its stream does."""
        for spans in spans_of([self.said]):
            self.host.turns.later(work_of(spans), partial(self._settle_some, spans))
        self.host.turns.later(0, self._tell)

    def _settle_at_last(self, late: int) -> None:
        self.host.late.over(late)
        self._settle_and_tell()

    def _settle_and_tell(self) -> None:
        """What it gave back is abandoned with the end of its stream: on the next one its gateway may have it again."""
        try:
            if self.said.outcome in FINAL or not self.holder.broken:
                self._settle(self.said)
        finally:
            self._tell()

    def _settle_some(self, spans: Sequence[Span]) -> None:
        for some in cut(spans):
            self._settle(some)

    def _settle(self, said: pb.Settle) -> None:
        settle(self.host, self.holder, self.outbox, said, self.host.now(), self.receipt)

    def _tell(self) -> None:
        self.host.safe_soon(self.receipt)
