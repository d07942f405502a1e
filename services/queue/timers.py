"""What happens by the clock: messages and queues that expire. One task for the process, nothing for each message."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from services.common.clock import monotonic
from services.common.containment import contained, for_each
from services.common.ledger.place import LedgerPlace
from services.common.ledger.stages import QUEUE_DELETED
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.links.releasing import release_in_turns
from services.queue.machine.entry import Entry
from services.queue.machine.message import NOBODYS
from services.queue.machine.record import uids_of
from services.queue.partitions.partition import Partition, PartitionState
from services.rpc.ledger_pb2 import DROPPED

_TICK = 0.05  # at least, between two looks
_SOON = 0.01  # while there is more to do than goes in one turn
_AT_ONCE = 0.002  # while consumers that choose have more to look at: others have their turn in between
_BUSY = 1.0  # at most, while anything has a deadline or is waited for
_IDLE = 15.0  # at most
_LONG = 0.002  # of one queue: then others have their turn before the next one


class Timers:
    """`has_place`: whether the topology is known to be complete, so that a queue that is not in it does not exist."""

    def __init__(self, host: Host, has_place: Callable[[], bool]) -> None:
        self._host = host
        self._has_place = has_place
        self._pause = _TICK

    def start(self) -> None:
        """Begins to tick."""
        self._host.tasks.start(self._run(), "timers")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            self._pause = _TICK
            try:
                await self._due()
                if self._host.certain:
                    await self.tick(self._host.now())
            except Exception as fault:  # noqa: BLE001 - without this task nothing expires any more
                contained("what happens by the clock", fault)
                await asyncio.sleep(_BUSY)

    async def _due(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._idle_seconds(self._host.now())):
                await self._host.timed.wait()
        self._host.timed.clear()

    def _idle_seconds(self, now: int) -> float:
        """How long nothing is due."""
        due = now + int((_BUSY if self._is_watchful() else _IDLE) * 1000)
        for partition in self._host.registry.partitions.values():
            deadlines = [
                queue.deadline() for number in partition.context.timed if (queue := partition.queues.get(number))
            ]
            due = min([due, *(each for each in (*deadlines, partition.claimable_until) if each > 0)])
        return max(due - now, 0) / 1000

    def _is_watchful(self) -> bool:
        """Deadlines may become sooner, memory has to become free, or orphans wait until the topology is known."""
        partitions = self._host.registry.partitions.values()
        return bool(self._host.full) or any(each.context.timed or each.orphans or each.notes for each in partitions)

    async def tick(self, now: int) -> None:
        """Does what is due; where that is much, in several queues, others have their turn between two of them."""
        host = self._host
        serving = [each for each in host.registry.partitions.values() if each.state is PartitionState.SERVING]
        for partition in serving:
            await self._check_queues(partition, now)
        serving = [each for each in serving if each.state is PartitionState.SERVING]
        for_each("what a partition does by the clock", serving, lambda each: self._check_claims(each, now))
        if self._has_place():
            for_each("dropping what deleted queues had", serving, self._drop_orphans)
        host.check_full()

    async def _check_queues(self, partition: Partition, now: int) -> None:
        timed = partition.context.timed
        check = partial(self._check, partition, now=now)
        for number in list(timed):
            if partition.state is not PartitionState.SERVING or not self._host.certain:
                return
            began = monotonic()
            # One that fails would do so at every tick: it is left alone until it expects something again.
            for_each("what a queue does by the clock", [number], check, lambda queue_id, _: timed.discard(queue_id))
            if monotonic() - began > _LONG:
                await asyncio.sleep(0)

    def _check_claims(self, partition: Partition, now: int) -> None:
        if not 0 < partition.claimable_until <= now:
            return
        # What gateways say of this partition may wait behind what they have said.
        if now < partition.claimable_most and any(map(self._host.hears, partition.formers)):
            partition.wait_longer(now)
        else:
            self._release_unclaimed(partition)

    def _check(self, partition: Partition, queue_id: SlotId, now: int) -> None:
        queue = partition.queues.get(queue_id)
        if queue is None:
            partition.context.timed.discard(queue_id)
            return
        if queue.use.awaits(now) and self._host.untold.has_none_of(queue):
            queue.use.all_have_come(now)
        if 0 < queue.deadline() <= now:
            queue.expire(now)
            queue.dispatch(now)
            if queue.unfinished:
                self._pause = _AT_ONCE
            elif 0 < queue.deadline() <= now:
                self._pause = min(self._pause, _SOON)
            if queue.use.expired(now) or queue.use.deserted(now):
                self._host.delete_soon(queue_id)

    def _release_unclaimed(self, partition: Partition) -> None:
        """The gateways that had these from the former owner did not come back."""
        formers, partition.formers, partition.claimable_until = partition.formers, {}, 0
        for former in formers.values():
            release_in_turns(self._host, list(partition.queues.values()), former)

    def _drop_orphans(self, partition: Partition) -> None:
        """Entries of queues that were deleted while nobody owned their partition; not of one that cannot be served."""
        definitions = self._host.registry.definitions
        for queue_id in [each for each in partition.notes if each not in definitions]:
            partition.context.draft.drop_notes([place for _, place in partition.notes.pop(queue_id)])
        for queue_id in [each for each in partition.orphans if each not in definitions]:
            entries = partition.orphans.pop(queue_id)
            _tell_orphaned(partition, entries)
            partition.context.forget(entries, NOBODYS, durable=True)


def _tell_orphaned(partition: Partition, entries: list[Entry]) -> None:
    """The record does not name the queue: nobody knows any more what it was called."""
    if partition.recorder.on and entries:
        place = LedgerPlace(entries[0].message.facts.virtual_host, partition=partition.number, epoch=partition.epoch)
        partition.recorder.record(DROPPED, place, uids_of(entries), reason=QUEUE_DELETED)
