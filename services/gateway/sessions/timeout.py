"""How long a consumer may keep a delivery unsettled: as long as its queue's x-consumer-timeout says.

A consumer that keeps one for longer is slow, or stuck. The delivery goes back to its queue, and the consumer is
cancelled. Deliveries within a sixteenth of that time are checked together, so it may take so much longer. What a
transaction had that is rolled back, it may keep for that long again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import structlog

from services.rpc.queue_pb2 import RELEASE

if TYPE_CHECKING:
    from services.gateway.sessions.consumer import Consumer

log = structlog.get_logger()

_LOOKS = 16


class Timeout:
    """The timeout of one consumer, which has `ms` for each delivery."""

    def __init__(self, consumer: Consumer, ms: int) -> None:
        self._consumer = consumer
        self._seconds = ms / 1000
        self._sent: deque[tuple[float, int]] = deque()
        """For each group of deliveries: when its last one was made, and the number that follows it."""
        self._began = 0.0  # when the first delivery of the latest group was made
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def sent(self, next_number: int) -> None:
        """Deliveries below that number were written, or are unsettled again."""
        now = self._loop.time()
        if self._sent and now < self._began + self._seconds / _LOOKS:
            self._sent[-1] = now, next_number
            return
        self._began = now
        self._sent.append((now, next_number))
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """The session holds nothing any more."""
        if self._timer:
            self._timer.cancel()
        self._timer = None
        self._sent.clear()

    def _arm(self) -> None:
        self._timer = self._loop.call_at(self._sent[0][0] + self._seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        below = 0
        while self._sent and self._sent[0][0] + self._seconds <= self._loop.time():
            below = self._sent.popleft()[1]
        if self._sent:
            self._arm()
        if below and (overdue := self._kept(below)):
            self._take_back(overdue)

    def _kept(self, below: int) -> list[int]:
        """Numbers of the deliveries below `below` that are still unsettled."""
        return [number for number in self._consumer.unsettled if number < below]

    def _take_back(self, overdue: list[int]) -> None:
        consumer = self._consumer
        log.warning(
            "a consumer keeps deliveries for too long, it is cancelled and they go to others",
            connection=consumer.session.connection.name,
            consumer=consumer.tag,
            deliveries=len(overdue),
            do="see that it acknowledges, or set x-consumer-timeout of its queue higher",
        )
        consumer.session.broker.end(consumer)
        self._release(overdue)

    def _release(self, numbers: list[int]) -> None:
        """Releases deliveries as if the client had. If it still settles them, that is too late, but no error."""
        session, queue_id = self._consumer.session, self._consumer.queue_id
        uids = session.numbers.take_late(numbers)
        session.broker.observer.settled(session.connection, queue_id, RELEASE, uids)
        session.broker.settle(queue_id, RELEASE, uids)
        for other in session.consumers.values():
            session.connection.wrote(other)  # the limit over all consumers may now allow them more
