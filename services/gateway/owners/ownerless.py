"""Queues between two owners: what clients hold of them, and say of it, until there is the next.

A new owner knows nothing of deliveries that are under way. It is first told by each consumer, as it attaches again,
which ones are held; what is held without a consumer (basic.get, a consumer that was cancelled) and what was settled
meanwhile, or before without an answer, is told with them, or by itself. Settlements follow when it has agreed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from services.common.clients.queue_link import Settlement
from services.common.containment import for_each
from services.gateway.owners.holdings_report import Told
from services.gateway.owners.used import Used
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.common.clients.publisher import Publisher
    from services.common.clients.queue_link import QueueLink
    from services.gateway.owners.holders import Attached, Holder, Holding, Settled
    from services.rpc import router_pb2

    Holdings = Mapping[Holder, list[int]]

Term: TypeAlias = "tuple[QueueLink | None, int]"

_HELD = 50_000  # deliveries in one claim: the owner does other things in between
_SOON = 0.005  # seconds, in which what happens together is looked at together: clients wait
_AGAIN = 0.05  # while nothing happens


@dataclass(slots=True)
class _Place:
    """One queue without an owner that has agreed."""

    consumers: dict[Attached, None] = field(default_factory=dict)  # to be attached
    kept: list[tuple[pb.Outcome.ValueType, Sequence[int]]] = field(default_factory=list)
    late: list[tuple[pb.Outcome.ValueType, Sequence[int]]] = field(default_factory=list)  # not told when it was asked
    asked: set[int] = field(default_factory=set)  # handles whose attachment is not answered yet
    link: QueueLink | None = None  # where they were asked


class Adrift:
    """`sessions` are all of the gateway; `end` is told consumers of queues that are no more."""

    def __init__(
        self,
        publisher: Publisher,
        queues: Mapping[int, router_pb2.QueueDefinition],
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
        self._places: dict[int, _Place] = defaultdict(_Place)
        self._handles: dict[int, int] = {}  # asked → queue
        self.used = Used(queues)
        self._told = Told(publisher, self.used)
        self._retry: asyncio.TimerHandle | None = None

    def exists(self, queue_id: int) -> bool:
        """Whether the topology has the queue."""
        return queue_id in self._queues

    def link_of(self, queue_id: int) -> QueueLink | None:
        """The owner that knows what is held of the queue, or None for now."""
        return None if queue_id in self._places else self._publisher.link_of(queue_id)

    def term_of(self, queue_id: int) -> Term:
        """Who owns the queue, and since which epoch of its partition."""
        return self._publisher.link_of(queue_id), self._publisher.epoch_of(queue_id)

    # -------------------------------------------------------------- what waits

    def settle(self, queue_id: int, outcome: pb.Outcome.ValueType, uids: Sequence[int]) -> None:
        """Says what became of deliveries, now or when the queue has an owner again."""
        link = self.link_of(queue_id)
        if link:
            self._say(link, queue_id, outcome, uids)
        elif uids and queue_id in self._queues:
            self._places[queue_id].kept.append((outcome, uids))
            self._look_within(_AGAIN)

    def give_back(self, settlements: Iterable[Settlement]) -> None:
        """What a former owner was told, and may not have carried out.

        What was released is left out: if nobody holds it, it is released, and if it was, somebody else may have it.
        """
        for queue_id, outcome, uids in settlements:
            if outcome in (pb.ACCEPT, pb.REJECT) and queue_id in self._queues:
                place = self._places[queue_id]
                (place.late if place.asked else place.kept).append((outcome, uids))
        self._look_within(_AGAIN)

    def settle_elsewhere(self, settlements: Iterable[Settled], told: Mapping[int, Term]) -> None:
        """What a transaction has settled, where the owner that was `told` is not the owner any more.

        The next one may be the same process, which does not carry out what was settled in its former term.
        """
        changed = {queue_id for queue_id, term in told.items() if term != self.term_of(queue_id)}
        for each in settlements:
            queue_id, link = each.holder.queue_id, each.holder.link
            if (link and queue_id not in changed) or queue_id not in self._queues:
                continue
            place = self._places.get(queue_id)
            if link is None:
                self.give_back((Settlement(queue_id, each.outcome, [each.uid]),))
            elif place is None:
                self._say(link, queue_id, each.outcome, [each.uid])
            else:
                (place.late if place.asked else place.kept).append((each.outcome, [each.uid]))
                self._look_within(_AGAIN)

    def _say(self, link: QueueLink, queue_id: int, outcome: pb.Outcome.ValueType, uids: Sequence[int]) -> None:
        link.settle(queue_id, outcome, uids, term=self._publisher.epoch_of(queue_id))

    def add(self, consumer: Attached) -> None:
        """A consumer to be attached again."""
        self._places[consumer.queue_id].consumers[consumer] = None
        self.holds(consumer)

    def holds(self, consumer: Attached) -> None:
        """The queue's next owner is told what a consumer holds, also of one that is not attached again."""
        self._forget(self._places[consumer.queue_id], consumer.handle)
        self.retry_soon()

    def discard(self, consumer: Attached) -> None:
        """A consumer that ended; what it holds is still told."""
        place = self._places.get(consumer.queue_id)
        if place:
            place.consumers.pop(consumer, None)

    def link_down(self, link: QueueLink, is_lost: Callable[[int], bool]) -> None:
        """An owner is gone, for the queues of which `is_lost` says so; its consumers are added one by one."""
        for queue_id, place in self._places.items():
            if place.link is link and is_lost(queue_id):
                for handle in list(place.asked):
                    self._forget(place, handle)
        for session in self._sessions:
            for holder, _ in session.holdings():
                if holder.link is link and is_lost(holder.queue_id):
                    holder.link = None
                    self._places[holder.queue_id]
        self.retry_soon()

    def _forget(self, place: _Place, handle: int) -> None:
        place.asked.discard(handle)
        self._handles.pop(handle, None)

    def link_up(self, link: QueueLink) -> None:
        """A stream begins, on which nothing has been told."""
        self._told.forget_link(link)
        self.look_soon()

    # -------------------------------------------------------------- asking

    def look_soon(self) -> None:
        """Looks for owners shortly, who wait to hear what is held, or that it is nothing."""
        if self._retry:
            self._retry.cancel()
        # Some loops give no time of what is called at once.
        self._retry = asyncio.get_running_loop().call_later(_SOON, self._look)

    def retry_soon(self) -> None:
        """Looks for owners shortly, while anything waits for one."""
        self._look_within(_SOON)

    def _look_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if not self._places or (self._retry and self._retry.when() <= loop.time() + seconds):
            return
        if self._retry:
            self._retry.cancel()
        self._retry = loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._retry = None
        found: dict[int, QueueLink] = {}
        for queue_id, place in list(self._places.items()):
            if queue_id not in self._queues:
                self._drop(queue_id)
            elif not place.asked and (link := self._publisher.link_of(queue_id)):
                found[queue_id] = link
        if found:
            held = self._held_of(found)
            for_each("asking a queue's next owner", found.items(), lambda each: self._ask(*each, held[each[0]]))
        self._told.tell({self._partition_of(queue_id) for queue_id in self._places if not self._is_asked(queue_id)})
        self._look_within(_AGAIN)

    def _is_asked(self, queue_id: int) -> bool:
        place = self._places[queue_id]
        return bool(place.asked) and place.link is self._publisher.link_of(queue_id)

    def _partition_of(self, queue_id: int) -> int | None:
        definition = self._queues.get(queue_id)
        return definition.partition if definition else None

    def _drop(self, queue_id: int) -> None:
        for_each("ending a consumer", list(self._places.pop(queue_id).consumers), self._end)

    def _held_of(self, queues: Mapping[int, QueueLink]) -> dict[int, dict[Holder, list[int]]]:
        held: dict[int, dict[Holder, list[int]]] = defaultdict(lambda: defaultdict(list))
        for session in self._sessions:
            for holder, uid in session.holdings():
                if holder.queue_id in queues:
                    held[holder.queue_id][holder].append(uid)
        return held

    def _ask(self, queue_id: int, link: QueueLink, held: Holdings) -> None:
        place = self._places[queue_id]
        consumers, place.consumers, place.link = place.consumers, {}, link
        place.kept, place.late = place.kept + place.late, []
        strays = [uid for _, uids in place.kept for uid in uids]
        for holder, uids in held.items():
            holder.link = link
            if holder not in consumers:
                strays += uids
        for consumer in consumers:
            self._attach(consumer, link, list(held.get(consumer, ())), again=True)
            self._expect(place, queue_id, consumer.handle)
        if strays:
            self._claim(place, queue_id, link, strays)
        if not place.asked:
            del self._places[queue_id]

    def _claim(self, place: _Place, queue_id: int, link: QueueLink, uids: list[int]) -> None:
        """Has the owner know deliveries that no consumer stands for."""
        for first in range(0, len(uids), _HELD):
            handle, held = self._new_handle(), uids[first : first + _HELD]
            self._expect(place, queue_id, handle)
            term = self._publisher.epoch_of(queue_id)
            attach = pb.AttachConsumer(consumer=handle, queue_id=queue_id, held=held, again=True, stray=True, term=term)
            link.attach(attach)

    def _expect(self, place: _Place, queue_id: int, handle: int) -> None:
        place.asked.add(handle)
        self._handles[handle] = queue_id

    def answered(self, handle: int, *, agreed: bool) -> None:
        """An owner has answered an attachment; when it agreed to all, it is told what was settled meanwhile."""
        queue_id = self._handles.pop(handle, 0)
        if not agreed:
            self._told.forget(self._partition_of(queue_id))
        place = self._places.get(queue_id)
        if place is None:
            return
        place.asked.discard(handle)
        if agreed and not place.asked and not place.consumers and place.link:
            del self._places[queue_id]
            for outcome, uids in place.kept:
                self._say(place.link, queue_id, outcome, uids)
            if place.late:
                self._places[queue_id].kept = place.late
                self.retry_soon()
