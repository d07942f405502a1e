"""Consumers that drain: what is ready is sent, then they have no credit; or whose credit is taken back at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.outbox import Outbox
    from services.queue.machine.consumers import Consumer
    from services.queue.machine.queue import Queue
    from services.rpc import queue_pb2 as pb

_LOOK_SECONDS = 0.01


def end_credit(host: Host, outbox: Outbox, said: pb.Credit, consumers: Mapping[int, tuple[Consumer, Queue]]) -> None:
    """As a gateway has said with the credit that it granted to one of the consumers, if it did."""
    if said.stop and (found := consumers.get(said.consumer)):
        _stop(outbox, *found)
    elif said.drain:
        _drain(host, outbox, said.consumer, consumers)


def _stop(outbox: Outbox, consumer: Consumer, queue: Queue) -> None:
    """Whatever it is still sent goes in front of the answer."""
    outbox.frame.drained.add(consumer=consumer.handle, left=max(consumer.messages, 0), stopped=True)
    queue.consumers.stop(consumer)


def _drain(host: Host, outbox: Outbox, handle: int, consumers: Mapping[int, tuple[Consumer, Queue]]) -> None:
    """Answers when all ready entries were offered to the consumer; a queue that lags behind is looked at again soon.

    A consumer that has messages but no bytes of credit left is not answered: its gateway drains again with new credit.
    """
    found = consumers.get(handle)
    if found is None or found[0].link.broken:
        return
    consumer, queue = found
    if queue.lags(host.now()) or not queue.has_offered_all(consumer):
        later = partial(host.when_certain, partial(_drain, host, outbox, handle, consumers))
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, later)
    elif consumer.messages <= 0 or consumer.size > 0:
        outbox.frame.drained.add(consumer=handle, left=max(consumer.messages, 0))
        queue.consumers.stop(consumer)
