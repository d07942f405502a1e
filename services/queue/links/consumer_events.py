"""Consumers that come and go, for the bus."""

from __future__ import annotations

from typing import Literal, TypedDict

from services.common.bus.facts import ConsumerAttached, ConsumerCancelled, ConsumerDetached
from services.common.topology.slots import SlotId
from services.queue.machine.consumers import Consumer
from services.queue.machine.options import QueueOptions
from services.rpc import queue_pb2 as pb


class _Who(TypedDict):
    virtual_host: str
    queue: str
    queue_id: SlotId
    partition: int
    connection: str
    tag: str
    gateway: str


def attached(consumer: Consumer, queue: QueueOptions, gateway: str, *, again: bool) -> ConsumerAttached:
    """The consumer may be sent messages from now on."""
    return ConsumerAttached(
        **_who(consumer, queue, gateway), exclusive=consumer.exclusive, browse=consumer.browse, again=again
    )


def detached(consumer: Consumer, queue: QueueOptions, gateway: str) -> ConsumerDetached:
    """The consumer was cancelled by its client, or its gateway is gone."""
    return ConsumerDetached(**_who(consumer, queue, gateway))


def cancelled(consumer: Consumer, queue: QueueOptions, gateway: str, reason: pb.Reason.ValueType) -> ConsumerCancelled:
    """The consumer's queue is gone from this process."""
    why: Literal["partition moved", "queue deleted"] = "partition moved" if reason == pb.NOT_OWNER else "queue deleted"
    return ConsumerCancelled(**_who(consumer, queue, gateway), reason=why)


def _who(consumer: Consumer, queue: QueueOptions, gateway: str) -> _Who:
    return _Who(
        virtual_host=queue.virtual_host,
        queue=queue.name,
        queue_id=queue.queue_id,
        partition=queue.partition,
        connection=consumer.connection,
        tag=consumer.tag,
        gateway=gateway,
    )
