"""Consumers whose stream broke, and that re-attach in a moment if their gateway is alive.

A new consumer waits for them if it or one of them is exclusive: until their gateways have named all consumers that they
still have, or that moment is over. Admitted at once, it would consume beside an exclusive one that re-attaches; refused
at once, a client that has lost its gateway would be refused at the next one because of its own former consumer.

So does one that would be alone with what they hold: it would be given what stands behind that first.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from services.common.topology.slots import SlotId
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.options import QueueOptions
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Awaited
from services.rpc import queue_pb2 as pb


@dataclass(slots=True, eq=False)
class _Away(Awaited):
    """Consumers of one queue that are away; `exclusive`: one of them was exclusive."""

    partition: int
    consumers: list[Consumer] = field(default_factory=list)
    exclusive: bool = False


class Returning:
    """The consumers that are away, of all queues of a process."""

    def __init__(self) -> None:
        self._away: dict[SlotId, _Away] = {}  # by queue

    def left(self, consumer: Consumer, options: QueueOptions) -> None:
        """The consumer's stream broke."""
        away = self._away.setdefault(options.queue_id, _Away(options.partition))
        away.consumers.append(consumer)
        away.exclusive |= consumer.exclusive

    def awaited(self, queue: Queue, attach: pb.AttachConsumer) -> Awaited | None:
        """What a new consumer waits for; None when it is refused, or admitted, whether or not others re-attach."""
        away = self._away.get(queue.options.queue_id)
        if away is None or queue.consumers.refuses(exclusive=attach.exclusive):
            return None
        first_behind = bool(queue.unsettled) and not len(queue.consumers)
        return away if attach.exclusive or away.exclusive or first_behind else None

    def came(self, origin: int, partitions: AbstractSet[int]) -> None:
        """A gateway has told all of these partitions: those of its consumers that still exist have re-attached."""
        if partitions:
            self._drop(lambda consumer, partition: consumer.link.origin == origin and partition in partitions)

    def over(self, link: ConsumerLink) -> None:
        """The link's consumers are not waited for any more."""
        self._drop(lambda consumer, _: consumer.link is link)

    def _drop(self, is_settled: Callable[[Consumer, int], bool]) -> None:
        for queue_id, away in list(self._away.items()):
            away.consumers = [each for each in away.consumers if not is_settled(each, away.partition)]
            if not away.consumers:
                del self._away[queue_id]
                away.replay()
