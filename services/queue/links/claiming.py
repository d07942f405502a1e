"""What gateways say that their clients hold of queues, since former owners had them: claimed in parts where it is much.

Nothing of such a queue is delivered or dropped before all of it is claimed, what the gateway has not claimed stays its
own till then, and later frames of its stream wait: what a client settles must be claimed by then. Who takes from the
queue, or counts what is in it, waits as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import call
from typing import TYPE_CHECKING

from services.common.containment import by_itself, for_each
from services.queue.links.in_turns import InTurns
from services.queue.machine import turn
from services.queue.machine.consumers import Consumer
from services.queue.machine.queue import Queue
from services.queue.machine.walk import Walk
from services.queue.partitions.partition import Awaited
from services.queue.partitions.registry import Registry

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

_FAULTS = 3  # of one queue's looks: then it goes on without what is not found


@dataclass(slots=True, eq=False)
class _Claiming(Awaited):
    """Of one queue: `open` claims have parts that are not carried out, `then` is done when nothing is left.

    Before that comes, when all is `found`, what is `given_back` of it: it has its place again. After that the queue
    goes on, and what has waited for it is carried out. `faults`: steps that failed.
    """

    links: dict[PeerLink, None] = field(default_factory=dict)
    open: int = 0
    faults: int = 0
    found: bool = False
    given_back: list[Callable[[], None]] = field(default_factory=list)
    then: list[Callable[[], None]] = field(default_factory=list)


class Claims:
    """Of all queues of a process."""

    def __init__(self, registry: Registry, turns: InTurns) -> None:
        self._registry = registry
        self._turns = turns
        self._queues: dict[Queue, _Claiming] = {}
        self._links: dict[PeerLink, int] = {}  # in how many of these each holds something
        self._over = asyncio.Event()

    def __bool__(self) -> bool:
        """Whether anything is being claimed."""
        return bool(self._queues)

    def claim(self, queue: Queue, link: PeerLink, consumer: Consumer | None, held: Sequence[int]) -> None:
        """`link` holds these; without a consumer, none stands for them. If it is much, `then` tells when it is done."""
        if not held:
            return
        if queue not in self._queues and (looks := queue.seeking.looks(held)) <= self._turns.room:
            self._turns.spend(looks)
            queue.claim(held, link, self._registry.now(), consumer)
            return
        its = self._queues.get(queue) or self._begin(queue)
        self._keep_claimable(link)
        if link not in its.links:
            its.links[link] = None
            self._links[link] = self._links.get(link, 0) + 1
        its.open, its.found = its.open + 1, False
        # Not in this turn: to read the frame took long, and others in it may hold what would be delivered.
        for first in range(0, len(held), turn.CLAIMED):
            some = slice(first, first + turn.CLAIMED)
            cost = -(-turn.AT_ONCE * min(turn.CLAIMED, len(held) - first) // turn.CLAIMED)
            self._turns.later(cost, partial(self._expect, queue, link, consumer, held, some))
        self._turns.later(0, partial(self._all_expected, queue, its))

    def _begin(self, queue: Queue) -> _Claiming:
        queue.seeking.hold_up()
        its = self._queues[queue] = _Claiming()
        return its

    def _keep_claimable(self, link: PeerLink) -> None:
        """What its gateway says of other partitions waits behind this, too."""
        for partition in self._registry.partitions.values():
            if link.origin in partition.formers:
                partition.wait_longer(self._registry.now())

    def then(self, queue: Queue, work: Callable[[], None]) -> None:
        """Does it as soon as nothing of the queue is being claimed; not at all if that is another process's by then."""
        if its := self._queues.get(queue):
            its.then.append(work)
        else:
            work()

    def give_back(self, queue: Queue, link: PeerLink, work: Callable[[], None]) -> bool:
        """Whether `link` claims something of the queue: then this is done when it has it, wherever the queue is then.

        What it gives back sooner would be found behind that, and stay its own for ever. `work` puts into turns what it
        does: the queue goes on behind that.
        """
        its = self._queues.get(queue) if self._queues else None
        if its is None or its.found or link not in its.links:
            return False
        its.given_back.append(work)
        return True

    def awaited(self, queue: Queue | None) -> Awaited | None:
        """What those wait for who take from the queue, or count what is in it; None if nothing of it is claimed."""
        return self._queues.get(queue) if queue is not None and self._queues else None

    def concern(self, link: PeerLink) -> bool:
        """Whether something that this one holds is being claimed."""
        return link in self._links

    def concern_one_of(self, origin: int) -> bool:
        """The same of a stream of this gateway, this one or a former one."""
        return any(link.origin == origin for link in self._links)

    async def until_done(self, link: PeerLink) -> None:
        """Returns when none of it is, and leases hold."""
        await self._until(lambda: link not in self._links)

    async def until_claimed(self, queue: Queue) -> None:
        """Returns when nothing of the queue is being claimed, and leases hold."""
        await self._until(lambda: queue not in self._queues)

    async def _until(self, is_done: Callable[[], bool]) -> None:
        await self._turns.until_certain()
        while not is_done():
            self._over.clear()
            await self._over.wait()
            await self._turns.until_certain()

    def _is_here(self, queue: Queue) -> bool:
        return self._registry.settling(queue.options.queue_id) is queue

    def _expect(
        self, queue: Queue, link: PeerLink, consumer: Consumer | None, held: Sequence[int], some: slice
    ) -> None:
        if self._is_here(queue) and not link.over:
            queue.seeking.expect(held[some], link, consumer, self._registry.now())

    def _all_expected(self, queue: Queue, its: _Claiming) -> None:
        its.open -= 1
        if not its.open:
            self._turns.later(turn.AT_ONCE, partial(self._look, queue, its, None))

    def _look(self, queue: Queue, its: _Claiming, walk: Walk | None) -> None:
        if its.open:  # more was claimed meanwhile: that looks at all anew
            return
        more = False
        try:
            if self._is_here(queue):
                walk = walk or queue.seeking.begin()
                more = queue.seeking.look(walk, self._registry.now())
        except Exception:
            its.faults += 1
            walk, more = None, its.faults < _FAULTS  # what is not found yet would be given to others
            raise
        finally:
            if more:
                self._turns.later(turn.AT_ONCE, partial(self._look, queue, its, walk))
            else:
                self._all_found(queue, its)

    def _all_found(self, queue: Queue, its: _Claiming) -> None:
        if its.open:  # more was claimed while some was given back: that comes here, too
            return
        its.found, given_back, its.given_back = True, its.given_back, []
        if given_back:
            for_each("giving back what was claimed", given_back, call)
            self._turns.later(0, partial(self._all_found, queue, its))
        else:
            self._end(queue, its)

    def _end(self, queue: Queue, its: _Claiming) -> None:
        del self._queues[queue]
        self._over.set()
        freed = [link for link in its.links if self._is_free(link)]
        for link in its.links:
            self._keep_claimable(link)
        if self._is_here(queue):
            for_each("serving a queue whose messages are claimed", its.then, call)
            by_itself(
                "going on with a queue whose messages are claimed", partial(queue.seeking.go_on, self._registry.now())
            )
        its.replay()
        for_each("going on with a gateway", freed, lambda link: link.resume())

    def _is_free(self, link: PeerLink) -> bool:
        """Whether nothing else that it holds is being claimed."""
        self._links[link] -= 1
        if self._links[link]:
            return False
        del self._links[link]
        return True
