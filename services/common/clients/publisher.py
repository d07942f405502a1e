"""Gets messages to the queue processes that own their queues, also when the owner changes on the way.

Order: messages for one partition arrive in the order of their uids, which ascend. While no owner of a partition can be
reached, its messages wait here; they go out, marked as resent, once an owner can be.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from services.common.clients.frame_listener import FrameListener
from services.common.clients.moving import Moving
from services.common.clients.outbound import Attempt, Delivery, Messages, Targets, Ticket, frames_of
from services.common.clients.parked import UNKNOWN, Parked
from services.common.clients.parting import Partings
from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Congestion, Held, Pressure
from services.common.clients.queue_link import QueueLink
from services.common.clients.rooms import Rooms
from services.common.clients.said import Said
from services.common.clients.suspects import LARGE, Suspects
from services.common.clients.unknown import Unknown
from services.common.clock import Epoch
from services.common.containment import by_itself, for_each
from services.common.topology.slots import SlotId
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb

_HIGH = 8 << 20  # bytes not done on a link above which its publishers wait …
_LOW = 4 << 20  # … and below which they go on
_RETRY_SECONDS = 0.05
_MOVING_SECONDS = 0.005

Place = tuple[QueueLink | None, int]  # where messages for a queue go: a link, or None and the partition


class Publisher:
    """The links to all queue processes, and what is under way on them."""

    def __init__(
        self,
        name: str,
        uids: UidSource,
        table: PartitionTable,
        partition_of: Callable[[SlotId], int | None],
        listener: FrameListener | None = None,
    ) -> None:
        """`partition_of` gives a queue's partition by its id, or None when the queue is gone, or not known yet.

        A `listener` has consumers, and says to each new owner when all that they hold unsettled is reported.
        """
        self.uids = uids
        self.now = Epoch()
        """The time at which messages come, where their time to live begins."""
        self._name = name
        self._greetings = 0
        self._table = table
        self._partition_of = partition_of
        self._listener = listener
        self._links: dict[str, QueueLink] = {}
        self._rooms = Rooms.of_process()
        self._places: dict[SlotId, Place] = {}  # by queue id
        self._parked = Parked()
        self._moving = Moving(self._links)
        self._unknown = Unknown(self._links, partition_of)
        self._begun = Said()  # the epochs that the links were told of
        self._said = Said()  # the epochs whose owners know that everything was sent again
        self._suspects = Suspects()
        self._partings = Partings()
        self._held = Held()
        self._retry: asyncio.TimerHandle | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        table.listeners.append(self._assignment_changed)

    def start(self) -> None:
        """Connects to all queue processes, now and as they come."""
        self._assignment_changed()

    async def drained(self, seconds: float) -> None:
        """Returns when all published messages are done, or after so many seconds."""
        for _ in range(int(seconds / _RETRY_SECONDS)):
            if not self._parked and not any(link.outstanding for link in self._links.values()):
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def stop(self) -> None:
        """Ends all links. Messages that are not done stay unanswered."""
        self._partings.leaving = True
        if self._retry:
            self._retry.cancel()
        await asyncio.gather(*(link.stop() for link in self._links.values()), *self._stopping)

    # -------------------------------------------------------------- publishing

    def publish(self, messages: Messages, ticket: Ticket | None) -> Pressure | None:
        """Sends messages at the end of this turn; `ticket` hears when every queue concerned has them, or why not.

        Their uids have been taken from `self.uids` just now: no later uid may have been published before.
        Gives the reason to stop publishing for now, if there is one.
        """
        pressure: Pressure | None = None
        for link, attempt in self.attempts(messages, ticket):
            if link is None or self._must_wait(attempt):
                self._park_parts(attempt)
                pressure = pressure or Pressure(Congestion.FULL, None)
                continue
            self._send(link, attempt)
            if link.is_full(attempt.queues):
                pressure = Pressure(Congestion.BLOCKED, link, tuple(attempt.queues))
            elif link.outstanding > _HIGH and pressure is None:
                pressure = Pressure(Congestion.FULL, link)
        return pressure

    def attempts(self, messages: Messages, ticket: Ticket | None = None) -> Iterator[tuple[QueueLink | None, Attempt]]:
        """Attempts and their links, for the caller to send; link None: no owner now. `ticket` as `publish` says."""
        for some in frames_of(messages):
            queues, now = some.by_queue(), self.now()
            by_place: dict[Place, dict[SlotId, Sequence[int]]] = {}
            for queue_id, indexes in queues.items():
                by_place.setdefault(self._place_of(queue_id), {})[queue_id] = indexes
            whole = Attempt(some, queues, now, Delivery(ticket, some.numbers, len(by_place)), some.size)
            if len(by_place) == 1:
                yield next(iter(by_place))[0], whole
                continue
            shared = self._meet(some.targets)
            for (link, _), its in by_place.items():
                attempt = whole.part(its, resent=False)
                if not shared:  # no need to wait for the answers of other processes
                    attempt.delivery = Delivery(ticket, attempt.messages.numbers, 1)
                yield link, attempt

    def _meet(self, targets: Iterable[Targets]) -> bool:
        """Whether some message goes to several places: then all are answered together."""
        return any(len(set(map(self._place_of, each))) > 1 for each in set(targets) if len(each) > 1)

    def under_way(self) -> Iterator[Attempt]:
        """Attempts that were sent to queue processes and are not done."""
        return chain.from_iterable(link.under_way() for link in self._links.values())

    def when_relieved(self, pressure: Pressure, who: object, callback: Callable[[], None]) -> None:
        """Calls back once, when `who`, which was told to wait, may try again."""
        self._held.add(pressure, who, callback)

    def forget(self, who: object) -> None:
        """`who` is gone, and is not called back."""
        self._held.forget(who)

    def link_of(self, queue_id: SlotId) -> QueueLink | None:
        """The link to the owner of a queue, or None when it has none that can be reached."""
        return self.owner_of(queue_id)[0]

    def owner_of(self, queue_id: SlotId) -> tuple[QueueLink | None, int]:
        """The same, and the epoch of the owner, or 0 when it has none."""
        partition = self._partition_of(queue_id)
        return (None, 0) if partition is None else self.owner_in(partition)

    def owner_in(self, partition: int) -> tuple[QueueLink | None, int]:
        """The same of a partition."""
        owner = self._table.owners.get(partition)
        if owner is None:
            return None, 0
        link = self._links.get(owner.member)
        return link if link and link.up else None, owner.epoch

    def owners(self) -> Iterator[tuple[int, int, QueueLink]]:
        """Partition, epoch and link of every owner that can be reached."""
        for partition, owner in self._table.owners.items():
            link = self._links.get(owner.member)
            if link and link.up:
                yield partition, owner.epoch, link

    def _place_of(self, queue_id: SlotId) -> Place:
        place = self._places.get(queue_id)
        if place is None:
            partition = self._partition_of(queue_id)
            partition = UNKNOWN if partition is None else partition
            link = self._link_to(partition)
            place = self._places[queue_id] = link, UNKNOWN if link else partition
        return place

    def _link_to(self, partition: int) -> QueueLink | None:
        # New messages must not overtake what waits for the same partition, or what its former owner may still refuse.
        if partition in self._parked or not self._moving.is_over(partition):
            return None
        if partition == UNKNOWN:
            return self._unknown.link()
        return self.owner_in(partition)[0]

    def forget_routes(self) -> None:
        """Queues were deleted: the link for each queue is looked up anew."""
        self._places.clear()

    def queue_came(self, queue_id: SlotId) -> None:
        """A queue is known now: what was published to it before must go out before all that follows."""
        self._places.clear()
        partition = self._partition_of(queue_id)
        if partition is not None:
            for link in self._unknown.asked(queue_id):
                self._moving.wait_for(partition, link)
        self._park_known()

    # -------------------------------------------------------------- what waits for an owner

    def _park(self, partition: int, attempt: Attempt) -> None:
        self._parked.add(partition, attempt)
        self._places.clear()
        if self._retry is None:
            # A former owner answers soon, a new one may take longer.
            delay = _MOVING_SECONDS if partition in self._moving else _RETRY_SECONDS
            self._retry = asyncio.get_running_loop().call_later(delay, self._unpark)

    def _unpark(self) -> None:
        self._retry = None
        self._park_known()
        parked, self._parked = self._parked, Parked()
        self._places.clear()
        for partition, waiting in parked.take():
            link, attempts = None if self._is_untold(partition, waiting) else self._link_to(partition), waiting
            if link:
                attempts = [attempt for attempt in waiting if not self._suspects.refuses(attempt, link.member)]
            if link and partition != UNKNOWN and not (attempts and self._must_wait(attempts[0])):
                link.resume(partition)
                self._said.forget(partition)
            for attempt in attempts:
                if link and partition not in self._parked and not self._must_wait(attempt):
                    self._send(link, attempt)
                else:
                    self._park(partition, attempt)
        self._say_sent_again()
        self._relieve_parked()

    def _is_untold(self, partition: int, attempts: Iterable[Attempt]) -> bool:
        """Whether its owner must hear first what clients hold: a former one may have given them some of these."""
        its = self._listener
        return its is not None and any(each.resent for each in attempts) and not its.has_told(partition)

    def _park_known(self) -> None:
        """Moves what waits for unknown queues to their partitions, as soon as these are known."""
        for attempt in self._parked.take_known(self._partition_of):
            self._park_each(attempt, attempt.queues, resent=attempt.resent)

    def _begin_terms(self) -> None:
        """Tells owners in which of their epochs they get all that follows."""
        for partition, epoch, link in self.owners():
            if not self._begun.has(partition, epoch, link):
                self._begun.add(partition, epoch, link)
                link.begin(partition, epoch)

    def _say_sent_again(self) -> None:
        """Tells owners that nothing older will come: they forget what former owners knew of this publisher."""
        for partition, epoch, link in self.owners():
            if (
                not self._said.has(partition, epoch, link)
                and partition not in self._parked
                and self._moving.is_over(partition)
            ):
                self._said.add(partition, epoch, link)
                link.sent_again(partition, epoch)

    def _send(self, link: QueueLink, attempt: Attempt) -> None:
        if attempt.size > LARGE:
            self._suspects.sent(attempt)
        link.publish(attempt)

    def _must_wait(self, attempt: Attempt) -> bool:
        return attempt.size > LARGE and self._suspects.must_wait(attempt, self._parked)

    def _park_parts(self, attempt: Attempt) -> None:
        """Keeps an attempt that was not sent anywhere yet, in parts by partition."""
        self._park_each(attempt, attempt.queues, resent=False)

    def _park_each(self, attempt: Attempt, queues: Mapping[SlotId, Sequence[int]], *, resent: bool) -> int:
        """Keeps what is for these queues, in parts by partition; gives the number of parts."""
        by_partition: dict[int, dict[SlotId, Sequence[int]]] = defaultdict(dict)
        for queue_id, indexes in queues.items():
            partition = self._partition_of(queue_id)
            by_partition[UNKNOWN if partition is None else partition][queue_id] = indexes
        attempt.delivery.pending += len(by_partition) - 1
        for partition, its in by_partition.items():
            self._park(partition, attempt.part(its, resent=resent))
        return len(by_partition)

    def _send_again(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            if left := attempt.left():
                attempt.asks_again(left)
                self._park_each(attempt, left, resent=True)
            else:
                by_itself("hearing that all of it was turned away", attempt.delivery.finish)

    # -------------------------------------------------------------- the links say

    def link_up(self, link: QueueLink) -> None:
        self._partings.connected(link)
        self._places.clear()
        self._begin_terms()
        self.unpark_soon()
        if listener := self._listener:
            by_itself("attaching to a queue process", lambda: listener.link_up(link))
        self._say_sent_again()

    def link_down(self, link: QueueLink, attempts: list[Attempt]) -> None:
        self._partings.tell(link, attempts)
        self._places.clear()
        self._begun.forget_link(link)
        self._said.forget_link(link)
        if listener := self._listener:
            by_itself("detaching from a queue process", lambda: listener.link_down(link))
        self._suspects.lost(attempts, link.member, died=link.broken)
        self._send_again(attempts)
        self._relieve(link, full_changed=True)

    def done(self, attempt: Attempt) -> None:
        if attempt.size > LARGE and self._suspects.done(attempt):
            self.unpark_soon()
        attempt.delivery.finish()

    def refused(self, link: QueueLink, attempt: Attempt, queue_id: SlotId, indexes: Sequence[int], reason: int) -> None:
        if reason not in (pb.NOT_OWNER, pb.UNAVAILABLE):
            attempt.delivery.refuse(attempt.numbers(indexes), queue_id, reason)
            return
        partition = self._partition_of(queue_id)
        if partition is not None:
            # What was sent there after it is refused as well: all of it is sent again together, in its order.
            self._moving.wait_for(partition, link)
            self._said.forget(partition)
        attempt.delivery.pending += 1
        self._park_each(attempt, {queue_id: indexes}, resent=True)
        attempt.turned_away.append((queue_id, indexes))

    def received(self, link: QueueLink, frame: pb.QueueFrame, bodies: list[bytes]) -> None:
        self._relieve(link, full_changed=frame.HasField("blocked"))
        if self._partings.lost:
            self._partings.heard(link)
        if self._moving:
            self._say_sent_again()
        if frame.lost_partitions:
            self._partings.handed_over(link, self._table.ended(frame.lost_partitions, frame.lost_terms))
        if self._listener:
            self._listener.received(link, frame, bodies)

    # -------------------------------------------------------------- changes

    def _relieve(self, link: QueueLink, *, full_changed: bool) -> None:
        self._relieve_parked()
        if not link.up or link.outstanding <= _LOW:
            self._held.let_go(link, Congestion.FULL)
        if full_changed:
            self._held.let_go(link, Congestion.BLOCKED, link.is_full)

    def _relieve_parked(self) -> None:
        if self._parked.size <= _HIGH:
            self._held.let_go(None, Congestion.FULL)

    def unpark_soon(self) -> None:
        """Something may be sent now that has waited."""
        if self._parked:
            if self._retry:
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(0, self._unpark)

    def _greeting(self, member: str) -> pb.Hello:
        self._greetings += 1
        tells, origin = self._listener is not None, self.uids.origin
        hello = pb.Hello(origin=origin, name=self._name, tells=tells, member=member, number=self._greetings)
        hello.says_terms = hello.reads_keys = True
        return hello

    def _assignment_changed(self) -> None:
        self._places.clear()
        self._note_moves()
        members = self._table.members
        for member in self._links.keys() - members.keys():
            self._drop(self._links.pop(member))
        for member, address in members.items():
            if member not in self._links:
                link = self._links[member] = QueueLink(member, address, self._greeting, self, self._rooms)
                link.start()
        self._begin_terms()
        self._partings.know(self._table.owners)
        self.unpark_soon()
        self._say_sent_again()
        if self._listener:
            self._listener.assignment_changed()

    def _note_moves(self) -> None:
        moved = self._moving.follow(self._table.owners)
        if listener := self._listener:
            for_each("following partitions that moved", moved.items(), lambda each: listener.moved(*each))

    def _drop(self, link: QueueLink) -> None:
        # A member that is no longer believed alive owns nothing, whatever it still says. What it had is parked at once,
        # so that nothing published from now on overtakes it.
        link.give_up()
        task = asyncio.get_running_loop().create_task(link.stop(), name=f"stop link {link.address}")
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
