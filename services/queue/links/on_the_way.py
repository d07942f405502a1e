"""What is on its way to consumers that end, when there is nobody else: it comes back before others get what follows it.

Their gateway gives it back when it reads it. Until it has read as far as to the news of their end, the queue delivers
nothing; it was not going to, but the next consumer may be here by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from services.common.containment import by_itself

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.link import PeerLink
    from services.queue.machine.consumers import Consumer
    from services.queue.machine.queue import Queue

_SECONDS: Final = 1.0  # that a gateway which is there may take to say what it has read


class OnTheWay:
    """Of one link."""

    def __init__(self, host: Host, link: PeerLink) -> None:
        self._host = host
        self._link = link
        self._held_up: list[Queue] = []

    def hold_up(self, handles: Iterable[int]) -> None:
        """These end by the frame at hand; before anything of it is done, since the next one may come by it, too."""
        there = self._link.consumers
        ending = dict(there[handle] for handle in handles if handle in there)
        for queue in dict.fromkeys(ending.values()):
            if queue.unsettled and _leaves_nobody(queue, ending):
                queue.giving_back.hold_up()
                self._held_up.append(queue)

    def wait(self) -> None:
        """They have ended: their queues go on when what is unsettled yet is back, if it was on its way."""
        queues, self._held_up = self._held_up, []
        for queue in queues:
            wait = _Wait(self._host, self._link, queue)
            if queue.unsettled and not self._link.broken:
                self._link.outbox.when_read(wait.end)
            wait.begin() if queue.unsettled else wait.end()


class _Wait:
    """Of one queue; it ends once."""

    def __init__(self, host: Host, link: PeerLink, queue: Queue) -> None:
        self._host, self._link, self._queue = host, link, queue
        self._over = False

    def begin(self) -> None:
        asyncio.get_running_loop().call_later(_SECONDS, self._too_long)

    def _too_long(self) -> None:
        if self._link.broken and not self._link.over:  # all that it holds comes back, unless its gateway does
            self.begin()
        else:
            self.end()

    def end(self) -> None:
        if not self._over:
            self._over = True
            self._host.when_certain(self._go_on)

    def _go_on(self) -> None:
        queue = self._queue
        if self._host.registry.settling(queue.options.queue_id) is queue:
            by_itself("serving the next consumer", lambda: queue.giving_back.go_on(self._host.now()))


def _leaves_nobody(queue: Queue, ending: Collection[Consumer]) -> bool:
    """Whether those who could be given something all end; with others there the order is nobody's."""
    there = [each for each in queue.consumers if not each.browse]
    if queue.options.live_consumers == 1:
        there = [each for each in there if queue.consumers.is_live(each)]
    return bool(there) and all(each in ending for each in there)
