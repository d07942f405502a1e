"""Consumers whose stream broke, and who come again in a moment if their gateway lives.

A newcomer whom exclusivity concerns waits until their gateways have said all that their consumers are, or that moment
is over. Let in at once, it would be there beside who comes again; refused at once, a client that has lost its gateway
would be refused at the next one because of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from services.queue.machine.consumers import Consumer, Link
from services.queue.machine.options import QueueOptions
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Awaited
from services.rpc import queue_pb2 as pb


@dataclass(slots=True, eq=False)
class _Away(Awaited):
    """Of one queue; `exclusive`: one of them had it to itself."""

    partition: int
    consumers: list[Consumer] = field(default_factory=list)
    exclusive: bool = False


class Returning:
    """Of all queues of a process."""

    def __init__(self) -> None:
        self._away: dict[int, _Away] = {}  # by queue

    def left(self, consumer: Consumer, options: QueueOptions) -> None:
        """Its stream broke."""
        away = self._away.setdefault(options.queue_id, _Away(options.partition))
        away.consumers.append(consumer)
        away.exclusive |= consumer.exclusive

    def awaited(self, queue: Queue, attach: pb.AttachConsumer) -> Awaited | None:
        """What a newcomer waits for; None when it is refused in any case, or let in whoever comes again."""
        away = self._away.get(attach.queue_id)
        if away is None or queue.consumers.refuses(exclusive=attach.exclusive):
            return None
        return away if attach.exclusive or away.exclusive else None

    def came(self, origin: int, partitions: AbstractSet[int]) -> None:
        """A gateway has said all of these partitions: its consumers have come again, those that still are."""
        if partitions:
            self._drop(lambda consumer, partition: consumer.link.origin == origin and partition in partitions)

    def over(self, link: Link) -> None:
        """Who was on it is not waited for any more."""
        self._drop(lambda consumer, _: consumer.link is link)

    def _drop(self, is_settled: Callable[[Consumer, int], bool]) -> None:
        for queue_id, away in list(self._away.items()):
            away.consumers = [each for each in away.consumers if not is_settled(each, away.partition)]
            if not away.consumers:
                del self._away[queue_id]
                away.replay()
