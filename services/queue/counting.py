"""The counts of this process's queues, for management: read when asked, so that no message pays for them."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from services.common.topology.slots import SlotId
from services.rpc import counts_pb2 as pb
from services.rpc.counts_pb2_grpc import CountsServicer

if TYPE_CHECKING:
    from services.queue.machine.queue import Queue
    from services.queue.partitions.registry import Registry

AT_ONCE: Final = 250
"""Queues and consumers in one turn of the loop: what carries messages does not wait for all."""


class Counting(CountsServicer):
    """hopline.counts.Counts."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def Count(self, request: pb.CountRequest, context: Any) -> AsyncIterator[pb.Counted]:  # noqa: ANN401, ARG002 - generic in its stubs only
        for told in portions(self._registry.queues):
            yield told
            await asyncio.sleep(0)


def portions(queues: Mapping[SlotId, Queue]) -> Iterator[pb.Counted]:
    """What all of them have, each at the moment of its portion; one that goes meanwhile is left out."""
    told, size = pb.Counted(), 0
    for number in list(queues):
        if (queue := queues.get(number)) is None:
            continue
        _tell(told, queue)
        size += 1
        for consumer in _consumers(queue):
            told.consumers.append(consumer)
            size += 1
            if size >= AT_ONCE:  # also of one queue: it may have thousands
                yield told
                told, size = pb.Counted(), 0
        if size >= AT_ONCE:
            yield told
            told, size = pb.Counted(), 0
    yield told


def _tell(told: pb.Counted, queue: Queue) -> None:
    told.queue_ids.append(queue.options.queue_id)
    told.ready.append(queue.ready_count)
    told.unsettled.append(len(queue.unsettled))
    told.bytes.append(queue.holding.size)


def _consumers(queue: Queue) -> Iterator[pb.Consumer]:
    """Those that there are as it begins."""
    reserve = queue.consumers.reserve()
    for consumer in list(queue.consumers):
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
