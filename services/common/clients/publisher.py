"""Gets runs of messages to the queue processes that own their queues, whoever that is by now.

Order: runs for one partition arrive in the order of their uids, which ascend. When a partition has no owner that can
be reached, what is for it waits here, and goes out, marked as resent, when one can.
"""

from __future__ import annotations

import asyncio
import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

import structlog

from services.common.clients.outbound import Attempt, Delivery, Run, Ticket
from services.common.clients.partition_table import PartitionTable
from services.common.clients.queue_link import QueueLink
from services.common.clock import epoch_ms
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb

log = structlog.get_logger()

_HIGH = 8 << 20  # bytes not done on a link above which its publishers wait …
_LOW = 4 << 20  # … and below which they go on
_RETRY_SECONDS = 0.05
_MOVING_SECONDS = 0.005

Groups = list[tuple[QueueLink | None, int, tuple[int, ...]]]  # link (None: nobody now), partition or -1, queue ids


class Congestion(enum.Enum):
    """Why a publisher should wait."""

    FULL = "wait until what is under way has been taken"
    BLOCKED = "wait until consumers have made room: a queue process is out of memory"


@dataclass(slots=True)
class Pressure:
    """What `publish` says when a publisher should wait; `link` is where, None for queues without an owner."""

    state: Congestion
    link: QueueLink | None


class FrameListener(Protocol):
    """Gets what the publisher itself does not use of the links."""

    def link_up(self, link: QueueLink) -> None: ...

    def link_down(self, link: QueueLink) -> None: ...

    def moved(self, link: QueueLink, partitions: AbstractSet[int]) -> None:
        """These are no longer the process's at the other end, whatever it still says."""

    def received(self, link: QueueLink, frame: pb.QueueFrame) -> None: ...

    def assignment_changed(self) -> None: ...


class Publisher:
    """The links to all queue processes, and what is under way on them."""

    def __init__(
        self,
        name: str,
        uids: UidSource,
        table: PartitionTable,
        partition_of: Callable[[int], int | None],
        listener: FrameListener | None = None,
    ) -> None:
        """`partition_of` tells a queue's partition by its id, or None when the queue is gone.

        A `listener` has consumers, and says to new owners of partitions when it has told what they hold.
        """
        self.uids = uids
        self._hello = pb.Hello(origin=uids.origin, name=name, tells=listener is not None)
        self._table = table
        self._partition_of = partition_of
        self._listener = listener
        self._links: dict[str, QueueLink] = {}
        self._groups: dict[tuple[int, ...], Groups] = {}
        self._parked: dict[int, list[Attempt]] = {}
        self._last_owners: dict[int, str] = {}  # partition → member
        self._moving: dict[int, dict[QueueLink, int]] = {}  # partition → whose answers up to which mark are waited for
        self._parked_bytes = 0
        self._held: list[tuple[Pressure, Callable[[], None]]] = []
        self._retry: asyncio.TimerHandle | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        table.listeners.append(self._assignment_changed)

    def start(self) -> None:
        """Connects to the processes that there are, and to those that come."""
        self._assignment_changed()

    async def drained(self, seconds: float) -> None:
        """Returns when everything is done that was published, or after so long."""
        for _ in range(int(seconds / _RETRY_SECONDS)):
            if not self._parked and not any(link.outstanding for link in self._links.values()):
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def stop(self) -> None:
        """Ends all links. Runs that are not done stay unanswered."""
        if self._retry:
            self._retry.cancel()
        await asyncio.gather(*(link.stop() for link in self._links.values()), *self._stopping)

    # -------------------------------------------------------------- publishing

    def publish(self, run: Run, uids: range, ticket: Ticket | None) -> Pressure | None:
        """Sends a run at the end of this turn; `ticket` hears when every queue concerned has it, or why not.

        `uids` have been taken from `self.uids` just now: none that was taken later may have been published before.
        Gives a reason to publish no more for now, if there is one.
        """
        bodies, now = run.bodies, epoch_ms()
        size = run.size + 64 * len(bodies)
        groups = self._groups.get(run.queue_ids) or self._group(run.queue_ids)
        delivery = Delivery(ticket, len(groups))
        pressure: Pressure | None = None
        for link, partition, queue_ids in groups:
            attempt = Attempt(run, queue_ids, uids, run.properties, bodies, 0, now, delivery, size)
            if link is None:
                self._park(partition, attempt)
                pressure = pressure or Pressure(Congestion.FULL, None)
                continue
            link.publish(attempt)
            if link.blocked:
                pressure = Pressure(Congestion.BLOCKED, link)
            elif link.outstanding > _HIGH and pressure is None:
                pressure = Pressure(Congestion.FULL, link)
        return pressure

    def when_relieved(self, pressure: Pressure, callback: Callable[[], None]) -> None:
        """Calls back once, when a publisher that was told so may try again."""
        self._held.append((pressure, callback))

    def link_of(self, queue_id: int) -> QueueLink | None:
        """The link to the owner of a queue, or None when it has none that can be reached."""
        partition = self._partition_of(queue_id)
        owner = None if partition is None else self._table.owners.get(partition)
        link = self._links.get(owner.member) if owner else None
        return link if link and link.up else None

    def owners(self) -> Iterator[tuple[int, int, QueueLink]]:
        """Partition, epoch and link of every owner that can be reached."""
        for partition, owner in self._table.owners.items():
            link = self._links.get(owner.member)
            if link and link.up:
                yield partition, owner.epoch, link

    def group(self, queue_ids: Sequence[int]) -> Groups:
        """Queues by the link to their owner; those that are out of reach by partition, with None."""
        return self._groups.get(tuple(queue_ids)) or self._group(tuple(queue_ids))

    def _group(self, queue_ids: tuple[int, ...]) -> Groups:
        """Never empty: queues that are gone go to whoever refuses them."""
        by_link: dict[QueueLink, list[int]] = defaultdict(list)
        by_partition: dict[int, list[int]] = defaultdict(list)
        for queue_id in queue_ids:
            partition = self._partition_of(queue_id)
            link = self._any_link() if partition is None else self._link_to(partition)
            if link:
                by_link[link].append(queue_id)
            else:
                by_partition[-1 if partition is None else partition].append(queue_id)
        groups: Groups = [(link, -1, tuple(ids)) for link, ids in by_link.items()]
        groups += [(None, partition, tuple(ids)) for partition, ids in by_partition.items()]
        if len(self._groups) > 100_000:
            self._groups.clear()
        self._groups[queue_ids] = groups
        return groups

    def _link_to(self, partition: int) -> QueueLink | None:
        owner = self._table.owners.get(partition)
        link = self._links.get(owner.member) if owner else None
        # Later runs must not overtake what waits for the same partition, or what its former owner may still refuse.
        return link if link and link.up and partition not in self._parked and self._moved(partition) else None

    def _moved(self, partition: int) -> bool:
        if partition in self._moving:
            if not all(link.passed(mark) for link, mark in self._moving[partition].items()):
                return False
            del self._moving[partition]
        return True

    def _any_link(self) -> QueueLink | None:
        return next((link for link in self._links.values() if link.up), None)

    def forget_routes(self) -> None:
        """Queues came or went: which link serves which is worked out anew."""
        self._groups.clear()

    # -------------------------------------------------------------- what waits for an owner

    def _park(self, partition: int, attempt: Attempt) -> None:
        self._parked.setdefault(partition, []).append(attempt)
        self._parked_bytes += attempt.size
        self._groups.clear()
        if self._retry is None:
            # A former owner answers at once, a next one may take its time.
            delay = _MOVING_SECONDS if partition in self._moving else _RETRY_SECONDS
            self._retry = asyncio.get_running_loop().call_later(delay, self._unpark)

    def _unpark(self) -> None:
        self._retry = None
        parked, self._parked, self._parked_bytes = self._parked, {}, 0
        self._groups.clear()
        for partition, attempts in parked.items():
            attempts.sort(key=_first_uid)
            link = self._any_link() if partition < 0 else self._link_to(partition)
            for attempt in attempts:
                if link:
                    link.publish(attempt)
                else:
                    self._park(partition, attempt)
        self._relieve()

    def _send_again(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            by_partition: dict[int, list[int]] = defaultdict(list)
            for queue_id in attempt.queue_ids:
                partition = self._partition_of(queue_id)
                by_partition[-1 if partition is None else partition].append(queue_id)
            attempt.delivery.pending += len(by_partition) - 1
            for partition, queue_ids in by_partition.items():
                self._park(partition, attempt.part(0, len(attempt.bodies), tuple(queue_ids)))

    # -------------------------------------------------------------- the links say

    def link_up(self, link: QueueLink) -> None:
        log.info("connected to queue process", address=link.address)
        self._groups.clear()
        self._unpark_soon()
        if self._listener:
            self._listener.link_up(link)

    def link_down(self, link: QueueLink, attempts: list[Attempt]) -> None:
        log.warning("lost queue process; what it had not confirmed goes to its successor", address=link.address)
        self._groups.clear()
        if self._listener:
            self._listener.link_down(link)
        self._send_again(attempts)
        self._relieve()

    def done(self, attempt: Attempt) -> None:
        attempt.delivery.finish()

    def refused(self, link: QueueLink, attempt: Attempt, refusal: pb.Refusal) -> None:
        if refusal.reason in (pb.NOT_OWNER, pb.UNAVAILABLE):
            attempt.delivery.pending += 1
            partition = self._partition_of(refusal.queue_id)
            again = attempt.part(refusal.first, refusal.count, (refusal.queue_id,))
            if partition is not None:
                # What went there after it is refused as well: it is all sent again together, in its order.
                self._moving.setdefault(partition, {})[link] = link.mark()
            self._park(-1 if partition is None else partition, again)
            return
        refused = (attempt.first + refusal.first, refusal.count, refusal.queue_id, int(refusal.reason))
        attempt.delivery.refusals.append(refused)

    def received(self, link: QueueLink, frame: pb.QueueFrame) -> None:
        if self._held:
            self._relieve()
        if self._listener:
            self._listener.received(link, frame)

    # -------------------------------------------------------------- changes

    def _relieve(self) -> None:
        held, self._held = self._held, []
        for pressure, callback in held:
            if self._presses(pressure):
                self._held.append((pressure, callback))
            else:
                callback()

    def _presses(self, pressure: Pressure) -> bool:
        link = pressure.link
        if link is None:
            return self._parked_bytes > _HIGH
        return link.up and (link.blocked if pressure.state is Congestion.BLOCKED else link.outstanding > _LOW)

    def _unpark_soon(self) -> None:
        if self._parked:
            if self._retry:
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(0, self._unpark)

    def _assignment_changed(self) -> None:
        self._groups.clear()
        self._note_moves()
        members = self._table.members
        for member in self._links.keys() - members.keys():
            self._drop(self._links.pop(member))
        for member, address in members.items():
            if member not in self._links:
                link = self._links[member] = QueueLink(member, address, self._hello, self)
                link.start()
        self._unpark_soon()
        if self._listener:
            self._listener.assignment_changed()

    def _note_moves(self) -> None:
        moved: dict[QueueLink, set[int]] = defaultdict(set)
        for partition, owner in self._table.owners.items():
            former = self._links.get(self._last_owners.get(partition, owner.member))
            if former and former.member != owner.member and former.up:
                # One that it moved away from before may not have answered either.
                self._moving.setdefault(partition, {})[former] = former.mark()
                moved[former].add(partition)
            self._last_owners[partition] = owner.member
        for former, partitions in moved.items():
            if self._listener:
                self._listener.moved(former, partitions)

    def _drop(self, link: QueueLink) -> None:
        # A member that is no longer believed alive owns nothing, whatever it still says. What it had is parked at once,
        # so that nothing which is published from now on overtakes it.
        link.give_up()
        task = asyncio.get_running_loop().create_task(link.stop(), name=f"stop link {link.address}")
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)


def _first_uid(attempt: Attempt) -> int:
    return attempt.uids[0]
