"""The counts of this process's queues, for management: read when asked, so that no message pays for them."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from services.rpc import counts_pb2 as pb
from services.rpc.counts_pb2_grpc import CountsServicer

if TYPE_CHECKING:
    from services.queue.machine.queue import Queue
    from services.queue.partitions.registry import Registry

_AT_ONCE = 250  # queues in one turn of the loop: what carries messages does not wait for all of them


class Counting(CountsServicer):
    """hopline.counts.Counts."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def Count(self, request: pb.CountRequest, context: Any) -> AsyncIterator[pb.Counted]:  # noqa: ANN401, ARG002 - generic in its stubs only
        left = iter(list(self._registry.queues))
        while numbers := list(islice(left, _AT_ONCE)):
            there = self._registry.queues
            yield counted(queue for number in numbers if (queue := there.get(number)) is not None)
            await asyncio.sleep(0)


def counted(queues: Iterable[Queue]) -> pb.Counted:
    """What some queues have at this moment."""
    found = list(queues)
    return pb.Counted(
        queue_ids=[queue.options.queue_id for queue in found],
        ready=[queue.ready_count for queue in found],
        unsettled=[len(queue.unsettled) for queue in found],
        bytes=[queue.holding.size for queue in found],
        consumers=[consumer for queue in found for consumer in _consumers(queue)],
    )


def _consumers(queue: Queue) -> Iterator[pb.Consumer]:
    reserve = queue.consumers.reserve()
    for consumer in queue.consumers:
        yield pb.Consumer(
            queue_id=queue.options.queue_id,
            tag=consumer.tag,
            connection=consumer.connection,
            exclusive=consumer.exclusive,
            settled=consumer.settled,
            browse=consumer.browse,
            priority=consumer.priority,
            live=consumer not in reserve,
            credit=consumer.ready,
        )
