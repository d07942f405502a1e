"""Consumers that drain: what is ready is sent, then they have no credit."""

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

_LOOK_SECONDS = 0.01


def drain(host: Host, outbox: Outbox, handle: int, consumers: Mapping[int, tuple[Consumer, Queue]]) -> None:
    """Answers when all ready entries were offered to the consumer; a queue that lags behind is looked at again soon.

    A consumer that has messages but no bytes of credit left is not answered: its gateway drains again with new credit.
    """
    found = consumers.get(handle)
    if found is None or found[0].link.broken:
        return
    consumer, queue = found
    if queue.lags(host.now()) or not queue.has_offered_all(consumer):
        later = partial(host.when_certain, partial(drain, host, outbox, handle, consumers))
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, later)
    elif consumer.messages <= 0 or consumer.size > 0:
        outbox.frame.drained.add(consumer=handle, left=max(consumer.messages, 0))
        queue.consumers.stop(consumer)
