"""What the policies of its virtual host say of a queue."""

from __future__ import annotations

from dataclasses import replace

from services.common.arguments import policies
from services.common.arguments.queue import QUEUE_TYPE
from services.common.arguments.reading import said
from services.common.message import arguments
from services.common.topology.definitions import Queue
from services.router.topology.virtual_host import VirtualHost


def governed(host: VirtualHost, queue: Queue) -> Queue:
    """The queue as it is under them; the same one where nothing changes."""
    if host.policies:
        type_ = QUEUE_TYPE.of(said(arguments.load(queue.arguments)))
        policy = policies.dumped(host.policies.of(queue.name, type_).definition)
    else:
        policy = b""
    return queue if policy == queue.policy else replace(queue, policy=policy)
