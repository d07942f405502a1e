"""Gateways that have not said yet what their clients hold of a partition, though it is served: they were slow, or new.

A former owner may have delivered what is sent again, and one of them may claim it. What would be refused waits until
they have spoken: a message is returned to its publisher, or a client has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from services.common.clock import monotonic
from services.common.containment import by_itself
from services.common.runtime import Tasks
from services.queue.links.expected import ANYBODY, Expected
from services.queue.links.gateways import Gateways
from services.queue.machine.arrival import Arrival
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Awaited, Partition, PartitionState
from services.queue.partitions.registry import Registry

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

_FIRST_WORDS: Final = 0.1  # seconds for gateways to hear of a process that has just started, and to connect
_AT_MOST: Final = 10.0  # seconds of a term: one that stands still for longer has lost its clients
_LOOK_SECONDS: Final = 0.005


class Untold:
    """`gateways` are all that there are, `links` those that are here, `expected` those that will come in a moment."""

    def __init__(
        self,
        registry: Registry,
        links: Iterable[PeerLink],
        expected: Expected,
        gateways: Gateways,
        tasks: Tasks,
        until_certain: Callable[[], Awaitable[None]],
    ) -> None:
        self._registry, self._links, self._expected, self._gateways = registry, links, expected, gateways
        self._tasks, self._until_certain = tasks, until_certain
        self._awaited: dict[Queue, Awaited] = {}

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._awaited)

    def expect_strangers(self) -> None:
        """This process has just said where it is: no gateway can have spoken to it yet."""
        self._expected.expect(ANYBODY, _FIRST_WORDS)

    @property
    def misses_any(self) -> bool:
        """Whether a gateway is alive, as far as is known, that has no stream to this process."""
        return bool(self._expected) or self._gateways.has_others({link.origin for link in self._links})

    def has_none_of(self, queue: Queue) -> bool:
        """Whether all gateways have said which consumers of the queue they have, and none of these waits."""
        options = queue.options
        partition, links = self._registry.partitions[options.partition], list(self._links)
        return (
            not self._expected
            and self._gateways.are_all_among({link.origin for link in links})
            and all(link.has_told(partition) and not link.awaiting.has(options.queue_id) for link in links)
        )

    def awaited(self, queue: Queue, arrival: Arrival, *, resent: bool) -> Awaited | None:
        """What these messages wait for, if they do: all that comes behind some that wait does too."""
        if (found := self._awaited.get(queue)) or not (resent and _may_be_refused(queue, arrival)):
            return found
        partition = self._registry.partitions[queue.options.partition]
        if not self._is_owed(partition):
            return None
        if not self._awaited:
            self._tasks.start(self._go_on(), "wait for gateways that have not said what they hold")
        found = self._awaited[queue] = Awaited()
        return found

    def _is_owed(self, partition: Partition | None) -> bool:
        """Whether somebody may yet claim what the partition's former owner has delivered."""
        if partition is None or partition.epoch == 1 or partition.state is not PartitionState.SERVING:
            return False
        if monotonic() > partition.served + _AT_MOST:
            return False
        return self.misses_any or any(not link.has_told(partition) for link in self._links)

    async def _go_on(self) -> None:
        while self._awaited:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._until_certain()
            partitions = {queue.options.partition for queue in self._awaited}
            owed = {number for number in partitions if self._is_owed(self._registry.partitions.get(number))}
            for queue in [queue for queue in self._awaited if queue.options.partition not in owed]:
                by_itself("taking what was sent again", self._awaited.pop(queue).replay)


def _may_be_refused(queue: Queue, arrival: Arrival) -> bool:
    return arrival.immediate or not queue.seeking.admits_all
