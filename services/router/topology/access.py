"""Finding what a request names, and who may touch it: an exclusive queue is its connection's alone (0-9-1: 405)."""

from __future__ import annotations

from services.common.errors import NotFound, ResourceLocked
from services.common.topology.definitions import Queue
from services.common.topology.life import Asker
from services.common.topology.source import Source
from services.router.topology.names import called
from services.router.topology.virtual_host import VirtualHost
from services.rpc.router_pb2 import ChangeRequest


def find_exchange(host: VirtualHost, name: str) -> Source:
    """Raises NotFound."""
    if (source := host.sources.get(name)) is None:
        raise NotFound(f"no {called('exchange', name, host.name)}")
    return source


def asker(request: ChangeRequest) -> Asker:
    """Who asks for a change."""
    return Asker(request.connection, request.session, request.container, request.principal, request.link)


def find_queue(host: VirtualHost, name: str, whose: Asker) -> Queue:
    """Raises NotFound, ResourceLocked."""
    if (queue := host.queues.get(name)) is None:
        raise NotFound(f"no {called('queue', name, host.name)}")
    check_owner(queue, whose)
    return queue


def check_owner(queue: Queue, whose: Asker) -> None:
    """Raises ResourceLocked for another's queue."""
    if not whose.may_use(queue.owner):
        raise locked(queue)


def locked(queue: Queue) -> ResourceLocked:
    """What a connection is told that asks for another's queue, or for an exclusive one that is not."""
    return ResourceLocked(
        f"cannot obtain exclusive access to locked {called('queue', queue.name, queue.virtual_host)}. It could be "
        "originally declared on another connection or the exclusive property value does not match that of the "
        "original declaration.",
    )
