"""What is on its way to consumers that end, when there is nobody else: it comes back before others get what follows it.

Their gateway gives it back when it reads it. Until it has read as far as to the news of their end, the queue delivers
nothing; it was not going to, but the next consumer may be here by then. The same where others are there, and get a
group of messages of which the former one has some. Other gateways that hold something are waited for too: a consumer
of theirs may have ended a moment before, when there were others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from services.common.containment import by_itself, for_each
from services.queue.machine.consumers import Consumer
from services.queue.machine.queue import Queue

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.link import PeerLink

_SECONDS: Final = 1.0  # that a gateway which is there may take to say what it has read


class OnTheWay:
    """Of one link."""

    def __init__(self, host: Host, link: PeerLink) -> None:
        self._host = host
        self._link = link
        self._held_up: list[Queue] = []
        self._waits: dict[_Wait, None] = {}

    def hold_up(self, handles: Iterable[int]) -> None:
        """These end by the frame at hand; before anything of it is done, since the next one may come by it, too."""
        there, ending = self._link.consumers, defaultdict[Queue, set[Consumer]](set)
        for consumer, queue in (there[handle] for handle in handles if handle in there):
            ending[queue].add(consumer)
        for queue, its in ending.items():
            if _leaves_some(queue, its):
                queue.giving_back.hold_up()
                self._held_up.append(queue)

    def wait(self) -> None:
        """They have ended: their queues go on when what is unsettled yet is back, if it was on its way."""
        queues, self._held_up = self._held_up, []
        for queue in queues:
            self._wait_for_all(queue)

    def stolen(self, queue: Queue) -> None:
        """Another consumer, which is not served yet, has taken the place of one that ends by this."""
        if queue.unsettled:
            queue.giving_back.hold_up()
            self._wait_for_all(queue)

    @contextmanager
    def cancelling(self, consumer: Consumer, queue: Queue) -> Iterator[None]:
        """It ends within this, without having been asked to."""
        if not _leaves_some(queue, {consumer}):
            yield
            return
        queue.giving_back.hold_up()
        try:
            yield
        finally:
            self._wait_for_all(queue)

    def _wait_for_all(self, queue: Queue) -> None:
        """For other gateways as well: a consumer of theirs may have ended a moment before."""
        self._wait_for(queue)
        for link in list(self._host.links) if queue.unsettled else ():
            if link is not self._link and queue in link.touched:
                queue.giving_back.hold_up()
                link.on_the_way._wait_for(queue)  # noqa: SLF001 - another one of these

    def _wait_for(self, queue: Queue) -> None:
        wait = _Wait(self._host, self._link, queue, self._waits)
        if not queue.unsettled:
            wait.end()
        elif not self._link.broken:
            wait.begin()
            self._link.outbox.when_read(wait.end)

    def over(self) -> None:
        """The link is, and all that it held is back."""
        for_each("serving the next consumers", list(self._waits), _Wait.end)


def _leaves_some(queue: Queue, ending: set[Consumer]) -> bool:
    """Whether something may be on its way to these, and others would be given the rest."""
    return bool(queue.unsettled) and (queue.consumers.are_all(ending) or any(map(queue.hands_groups_on, ending)))


class _Wait:
    """Of one queue, one of those that are not over; it ends once."""

    def __init__(self, host: Host, link: PeerLink, queue: Queue, all_: dict[_Wait, None]) -> None:
        self._host, self._link, self._queue, self._all = host, link, queue, all_
        self._timer: asyncio.TimerHandle | None = None
        all_[self] = None

    def begin(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._too_long)

    def _too_long(self) -> None:
        if not self._link.broken:  # else it ends with the link: all that this holds comes back, or its gateway does
            self.end()

    def end(self) -> None:
        if self in self._all:
            del self._all[self]
            if self._timer:
                self._timer.cancel()
            self._host.when_certain(self._go_on)

    def _go_on(self) -> None:
        queue = self._queue
        if self._host.registry.settling(queue.options.queue_id) is queue:
            by_itself("serving the next consumer", lambda: queue.giving_back.go_on(self._host.now()))
