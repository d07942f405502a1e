"""Queues between two owners: keeps what clients hold and what they settle, until the next owner has heard of it.

A new owner knows nothing of unsettled deliveries. As each consumer re-attaches, it names those that it holds. What is
held without a consumer (basic.get, a cancelled consumer), and what was settled while there was no owner or without an
answer from the former one, is claimed besides. When the owner has agreed, it is sent the settlements.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import structlog

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.link_frame import Settlement
from services.common.containment import for_each
from services.common.topology.slots import SlotId
from services.gateway.owners.again import FINAL, Delivery, more_than, said_again
from services.gateway.owners.holdings_report import HoldingsReport
from services.gateway.owners.used_queues import UsedQueues
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.common.clients.publisher import Publisher
    from services.common.clients.queue_link import QueueLink
    from services.common.errors import BrokerError
    from services.gateway.owners.holders import AttachedConsumer, Holder, Holding, Settled
    from services.rpc import router_pb2

    Holdings = Mapping[Holder, list[int]]

log = structlog.get_logger()

_HELD = 50_000  # deliveries in one claim: the owner does other things in between
_SOON = 0.005  # seconds after an event, so that events at about the same time are handled together: clients wait
_NONE = SlotId(0)  # no queue's
_AGAIN = 0.05  # seconds between looks while nothing happens
_ANNOTATIONS = 64 << 20  # bytes that are kept of them
_DO = "see that queue processes run, and take partitions over: hopline partitions"


class Term(NamedTuple):
    """The owner of a queue, and since when: a stream of it, counted, and the epoch of its partition."""

    link: QueueLink | None
    epoch: int
    stream: int = 0


@dataclass(slots=True)
class _OwnerlessQueue:
    """One queue without an owner, or with one that has not agreed yet."""

    consumers: dict[AttachedConsumer, None] = field(default_factory=dict)  # to be re-attached
    kept: list[Settlement] = field(default_factory=list)
    late: list[Settlement] = field(default_factory=list)  # since the owner was asked
    asked: set[int] = field(default_factory=set)  # handles of attachments that are not answered yet
    refused: bool = False  # one of them was, so all that is held is asked for again
    link: QueueLink | None = None  # on which the attachments were sent


class OwnerlessQueues:
    """`sessions` are all of the gateway; `end` is called with consumers of queues that are deleted."""

    def __init__(
        self,
        publisher: Publisher,
        queues: Mapping[SlotId, router_pb2.QueueDefinition],
        sessions: Iterable[Holding],
        new_handle: Callable[[], int],
        attach: Callable[..., None],
        end: Callable[..., None],
    ) -> None:
        self._publisher = publisher
        self._queues = queues
        self._sessions = sessions
        self._new_handle = new_handle
        self._attach = attach
        self._end = end
        self._ownerless: dict[SlotId, _OwnerlessQueue] = defaultdict(_OwnerlessQueue)
        self._handles: dict[int, SlotId] = {}  # asked → queue
        self.used = UsedQueues(queues)
        self._report = HoldingsReport(publisher, self.used)
        self._retry: asyncio.TimerHandle | None = None
        self._annotations = 0  # bytes of those that are kept
        self._dropping = False  # of late some were dropped

    def exists(self, queue_id: SlotId) -> bool:
        """Whether the topology has the queue."""
        return queue_id in self._queues

    def link_of(self, queue_id: SlotId) -> QueueLink | None:
        """The owner that knows what is held of the queue; None while there is none."""
        return None if queue_id in self._ownerless else self._publisher.link_of(queue_id)

    def term_of(self, queue_id: SlotId) -> Term:
        """The queue's owner, the epoch of its partition, and the stream on which it was told what is held."""
        link, epoch = self._publisher.owner_of(queue_id)
        return Term(link, epoch, link.streams if link else 0)

    def knows(self, queue_id: SlotId) -> bool:
        """Whether the queue's owner, if it has one, knows what is held of the queue."""
        return queue_id not in self._ownerless

    def has_told(self, partition: int) -> bool:
        """Whether the partition's owner has heard all that is held of it."""
        return self._report.has(partition)

    # -------------------------------------------------------------- what waits

    def settle(
        self, queue_id: SlotId, outcome: pb.Outcome.ValueType, uids: Sequence[int], change: Change = UNCHANGED
    ) -> None:
        """Settles deliveries with the queue's owner, now or when the queue has one again."""
        link, term = (None, 0) if queue_id in self._ownerless else self._publisher.owner_of(queue_id)
        if link:
            link.settle(queue_id, outcome, uids, term=term, change=change)
        elif uids and queue_id in self._queues:
            self._keep(self._ownerless[queue_id].kept, Settlement(queue_id, outcome, uids, change))
            self._look_within(_AGAIN)

    def give_back(self, settlements: Iterable[Settlement], *, committing: bool = False, lost: bool = False) -> None:
        """Keeps what has to be said again of settlements that a former owner was sent, and may not have carried out.

        All of them at once, in order. `committing`: of a transaction under way, which is among what is held. `lost`:
        the owner has handed nothing over.
        """
        for said in said_again(settlements, self._known(), int(committing), lost=lost):
            if said.uids and said.queue_id in self._queues:
                queue = self._ownerless[said.queue_id]
                self._keep(queue.late if queue.asked else queue.kept, said)
        self._look_within(_AGAIN)

    def _keep(self, line: list[Settlement], said: Settlement) -> None:
        """Without its annotations, where all that are kept take too much memory."""
        size = len(said.change.annotations)
        if self._annotations + size > _ANNOTATIONS:
            if not self._dropping:
                what = "annotations of deliveries are dropped, too many wait for an owner"
                log.warning(what, queue=said.queue_id, do=_DO)
            self._dropping = True
            said, size = said._replace(change=said.change._replace(annotations=b"")), 0
        self._annotations += size
        line.append(said)

    def _known(self) -> Iterator[Delivery]:
        """What consumers here hold, and what is kept for the next owner already."""
        yield from self._held()
        yield from self._kept()

    def _kept(self) -> Iterator[Delivery]:
        for queue_id, queue in self._ownerless.items():
            for said in chain(queue.kept, queue.late):
                yield from ((queue_id, uid) for uid in said.uids)

    def _held(self) -> Iterator[Delivery]:
        return ((holder.queue_id, uid) for session in self._sessions for holder, uid in session.holdings())

    def settle_elsewhere(self, settlements: Iterable[Settled], told: Mapping[SlotId, Term]) -> None:
        """Settles what a transaction has settled where the owner that was `told` is not the owner any more.

        The next owner may be the same process, which does not carry out what was settled in its former term; or has,
        before a new stream told it that the message is held. Then what is given back would stay so, unless it is told:
        but not what another consumer here was given since.
        """
        changed = {queue_id for queue_id, term in told.items() if term != self.term_of(queue_id)}
        some = [
            each
            for each in settlements
            if (each.holder.link is None or each.holder.queue_id in changed) and each.holder.queue_id in self._queues
        ]
        lost, anothers = list[Settlement](), self._anothers(some)
        said_already = more_than(0, _given_back(some), self._kept())  # as the owner died that may have carried it out
        for each in some:
            queue_id, link = each.holder.queue_id, each.holder.link
            queue, said = self._ownerless.get(queue_id), Settlement(queue_id, each.outcome, [each.uid], each.change)
            if link is None:
                lost.append(said)
            elif queue is None:
                if (queue_id, each.uid) not in anothers:
                    self._say(link, said)
            elif (queue_id, each.uid) not in said_already:
                self._keep(queue.late if queue.asked else queue.kept, said)
                self._look_within(_AGAIN)
        if lost:
            self.give_back(lost, committing=True)

    def _anothers(self, settlements: Iterable[Settled]) -> set[Delivery]:
        """Of what a transaction under way gives back, what a consumer here has besides."""
        return more_than(1, _given_back(settlements), self._held())

    def _say(self, link: QueueLink, said: Settlement) -> None:
        _, term = self._publisher.owner_of(said.queue_id)
        link.settle(said.queue_id, said.outcome, said.uids, term=term, change=said.change)

    def add(self, consumer: AttachedConsumer) -> None:
        """A consumer has lost its owner, and is to be re-attached."""
        self._ownerless[consumer.queue_id].consumers[consumer] = None
        self.holds(consumer)

    def holds(self, consumer: AttachedConsumer) -> None:
        """The queue's next owner is told what a consumer holds, even if the consumer is not re-attached."""
        self._forget(self._ownerless[consumer.queue_id], consumer.handle)
        self.retry_soon()

    def discard(self, consumer: AttachedConsumer) -> None:
        """A consumer has ended; what it holds is still reported."""
        queue = self._ownerless.get(consumer.queue_id)
        if queue:
            queue.consumers.pop(consumer, None)

    def link_down(self, link: QueueLink, is_lost: Callable[[SlotId], bool]) -> None:
        """An owner has lost the queues for which `is_lost` is true; its consumers are added one by one."""
        for queue_id, queue in self._ownerless.items():
            if queue.link is link and is_lost(queue_id):
                for handle in list(queue.asked):
                    self._forget(queue, handle)
        for session in self._sessions:
            for holder, _ in session.holdings():
                if holder.link is link and is_lost(holder.queue_id):
                    holder.link = None
                    self._ownerless[holder.queue_id]
        self.retry_soon()

    def _forget(self, queue: _OwnerlessQueue, handle: int) -> None:
        queue.asked.discard(handle)
        self._handles.pop(handle, None)

    def link_up(self, link: QueueLink) -> None:
        """A new stream begins, on which nothing has been reported."""
        self._report.forget_link(link)
        self.look_soon()

    # -------------------------------------------------------------- asking

    def look_soon(self) -> None:
        """Looks for owners shortly: they wait for the report of what is held, also if that is nothing."""
        if self._retry:
            self._retry.cancel()
        # Not `call_soon`: in some event loops its handle has no time.
        self._retry = asyncio.get_running_loop().call_later(_SOON, self._look)

    def retry_soon(self) -> None:
        """Looks for owners shortly, while anything waits for one."""
        self._look_within(_SOON)

    def _look_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if not self._ownerless or (self._retry and self._retry.when() <= loop.time() + seconds):
            return
        if self._retry:
            self._retry.cancel()
        self._retry = loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._retry = None
        found: dict[SlotId, QueueLink] = {}
        for queue_id, queue in list(self._ownerless.items()):
            if queue_id not in self._queues:
                self._drop(queue_id)
            elif not queue.asked and (link := self._publisher.link_of(queue_id)):
                found[queue_id] = link
        if found:
            held = self._held_of(found)
            for_each("asking a queue's next owner", found.items(), lambda each: self._ask(*each, held[each[0]]))
        self._report.tell(
            {self._partition_of(queue_id) for queue_id in self._ownerless if not self._is_asked(queue_id)}
        )
        self._look_within(_AGAIN)

    def _is_asked(self, queue_id: SlotId) -> bool:
        queue = self._ownerless[queue_id]
        return bool(queue.asked) and queue.link is self._publisher.link_of(queue_id)

    def _partition_of(self, queue_id: SlotId) -> int | None:
        definition = self._queues.get(queue_id)
        return definition.partition if definition else None

    def _drop(self, queue_id: SlotId) -> None:
        queue = self._ownerless.pop(queue_id)
        self._gone(queue.kept + queue.late)
        for_each("ending a consumer", list(queue.consumers), self._end)

    def _held_of(self, queues: Mapping[SlotId, QueueLink]) -> dict[SlotId, dict[Holder, list[int]]]:
        held: dict[SlotId, dict[Holder, list[int]]] = defaultdict(lambda: defaultdict(list))
        for session in self._sessions:
            for holder, uid in session.holdings():
                if holder.queue_id in queues:
                    held[holder.queue_id][holder].append(uid)
        return held

    def _ask(self, queue_id: SlotId, link: QueueLink, held: Holdings) -> None:
        queue = self._ownerless[queue_id]
        consumers, queue.consumers, queue.link, queue.refused = queue.consumers, {}, link, False
        queue.kept, queue.late = queue.kept + queue.late, []
        strays = [uid for said in queue.kept for uid in said.uids]
        for holder, uids in held.items():
            holder.link = link
            if holder not in consumers:
                strays += uids
        strays += self._attach_again(queue, queue_id, consumers, held)
        if strays:
            self._claim(queue, queue_id, link, strays)
            self._say_tried(queue, link)
        if not queue.asked:
            del self._ownerless[queue_id]

    def _say_tried(self, queue: _OwnerlessQueue, link: QueueLink) -> None:
        """Right behind the claim: it keeps its place, since nothing is delivered before that is answered."""
        tried = [said for said in queue.kept if said.outcome == pb.TRIED]
        if tried:
            queue.kept = [said for said in queue.kept if said.outcome != pb.TRIED]
        for said in tried:
            self._say(link, said)

    def _attach_again(
        self, queue: _OwnerlessQueue, queue_id: SlotId, consumers: Iterable[AttachedConsumer], held: Holdings
    ) -> list[int]:
        """Gives what those hold that could not be: each ends by itself, and the client may still settle it."""
        strays: list[int] = []

        def attach(consumer: AttachedConsumer) -> None:
            self._attach(consumer, queue.link, list(held.get(consumer, ())), again=True)
            self._expect(queue, queue_id, consumer.handle)

        def end(consumer: AttachedConsumer, _error: BrokerError) -> None:
            strays.extend(held.get(consumer, ()))
            self._end(consumer)

        for_each("attaching a consumer to its queue's next owner", consumers, attach, end)
        return strays

    def _claim(self, queue: _OwnerlessQueue, queue_id: SlotId, link: QueueLink, uids: list[int]) -> None:
        """Claims, at the owner, deliveries that no consumer claims."""
        for first in range(0, len(uids), _HELD):
            handle, held = self._new_handle(), uids[first : first + _HELD]
            self._expect(queue, queue_id, handle)
            _, term = self._publisher.owner_of(queue_id)
            attach = pb.AttachConsumer(consumer=handle, queue_id=queue_id, held=held, again=True, stray=True, term=term)
            link.attach(attach)

    def _expect(self, queue: _OwnerlessQueue, queue_id: SlotId, handle: int) -> None:
        queue.asked.add(handle)
        self._handles[handle] = queue_id

    def answered(self, handle: int, *, agreed: bool) -> None:
        """An owner has answered an attachment; when it has agreed to all, it is sent the settlements kept meanwhile."""
        queue_id = self._handles.pop(handle, _NONE)
        if not agreed:
            self._report.forget(self._partition_of(queue_id))
        queue = self._ownerless.get(queue_id)
        if queue is None:
            return
        queue.asked.discard(handle)
        queue.refused = queue.refused or not agreed
        if not queue.refused and not queue.asked and not queue.consumers and queue.link:
            del self._ownerless[queue_id]
            self._gone(queue.kept)
            for said in queue.kept:
                self._say(queue.link, said)
            if queue.late:
                self._ownerless[queue_id].kept = queue.late
                self.retry_soon()

    def _gone(self, kept: Iterable[Settlement]) -> None:
        """There is room for the annotations of others."""
        if size := sum(len(said.change.annotations) for said in kept):
            self._annotations, self._dropping = self._annotations - size, False


def _given_back(settlements: Iterable[Settled]) -> set[Delivery]:
    return {(each.holder.queue_id, each.uid) for each in settlements if each.outcome not in FINAL}
