"""What gateways say that their clients hold of queues, since former owners had them: claimed in parts where it is much.

Nothing of such a queue is delivered before all of it is claimed, what the gateway has not claimed stays its own till
then, and later frames of its stream wait: what a client settles must be claimed by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import call
from typing import TYPE_CHECKING

from services.common.containment import for_each
from services.queue.links.in_turns import InTurns
from services.queue.machine import turn
from services.queue.machine.consumers import Consumer
from services.queue.machine.queue import Queue
from services.queue.machine.walk import Walk
from services.queue.partitions.registry import Registry

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


@dataclass(slots=True)
class _Claiming:
    """Of one queue: `open` claims have parts that are not carried out, `then` is done when nothing is left."""

    links: dict[PeerLink, None] = field(default_factory=dict)
    open: int = 0
    then: list[Callable[[], None]] = field(default_factory=list)


class Claims:
    """Of all queues of a process."""

    def __init__(self, registry: Registry, turns: InTurns) -> None:
        self._registry = registry
        self._turns = turns
        self._queues: dict[Queue, _Claiming] = {}
        self._over = asyncio.Event()

    def claim(self, queue: Queue, link: PeerLink, consumer: Consumer | None, held: Sequence[int]) -> None:
        """`link` holds these; without a consumer, none stands for them. If it is much, `then` tells when it is done."""
        if not held:
            return
        if queue not in self._queues and not queue.seeking.is_much(held, self._turns.room):
            self._turns.spend(len(held))
            queue.claim(held, link, self._registry.now(), consumer)
            return
        if (its := self._queues.get(queue)) is None:
            its = self._queues[queue] = _Claiming()
            queue.hold_up()
        its.links[link] = None
        its.open += 1
        for first in range(0, len(held), turn.AT_ONCE):
            some = held[first : first + turn.AT_ONCE]
            self._turns.do(len(some), partial(self._expect, queue, link, consumer, some))
        self._turns.do(0, partial(self._all_expected, queue, its))

    def then(self, queue: Queue, work: Callable[[], None]) -> None:
        """Does it as soon as nothing of the queue is being claimed; not at all if that is another process's by then."""
        if its := self._queues.get(queue):
            its.then.append(work)
        else:
            work()

    def concern(self, link: PeerLink) -> bool:
        """Whether something that this one holds is being claimed."""
        return any(link in its.links for its in self._queues.values())

    async def until_done(self, link: PeerLink) -> None:
        """Returns when none of it is."""
        while self.concern(link):
            self._over.clear()
            await self._over.wait()

    def _is_here(self, queue: Queue) -> bool:
        return self._registry.settling(queue.options.queue_id) is queue

    def _expect(self, queue: Queue, link: PeerLink, consumer: Consumer | None, held: Sequence[int]) -> None:
        if self._is_here(queue) and not link.broken:
            now = self._registry.now()
            self._registry.partitions[queue.options.partition].wait_for_claims(now)
            queue.seeking.expect(held, link, consumer, now)

    def _all_expected(self, queue: Queue, its: _Claiming) -> None:
        its.open -= 1
        if not its.open:
            self._look(queue, its, queue.seeking.begin())

    def _look(self, queue: Queue, its: _Claiming, walk: Walk) -> None:
        if its.open:  # more was claimed meanwhile: that looks at all anew
            return
        more = False
        try:
            more = self._is_here(queue) and queue.seeking.look(walk, self._registry.now())
        finally:
            if more:
                self._turns.do(turn.AT_ONCE, partial(self._look, queue, its, walk))
            else:
                self._end(queue, its)

    def _end(self, queue: Queue, its: _Claiming) -> None:
        del self._queues[queue]
        self._over.set()
        if self._is_here(queue):
            for_each("serving a queue whose messages are claimed", its.then, call)
            queue.go_on(self._registry.now())
