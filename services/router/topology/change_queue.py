"""Changing arguments of a queue that is there: it heeds them from then on, with the messages that it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from services.common.arguments import changed
from services.common.arguments.reading import Wrong, said
from services.common.errors import NotFound, PreconditionFailed
from services.common.message import arguments
from services.common.topology.definitions import Queue
from services.router.topology import access, queue_arguments
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.names import called
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.rpc.router_pb2 import ChangeRequest


def change_queue(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Of one incarnation, where its id is said. Raises NotFound, ResourceLocked, PreconditionFailed."""
    asked = request.change_queue
    queue = access.find_queue(state.host(request.virtual_host), asked.name, access.asker(request))
    if asked.queue_id not in (0, queue.id):
        raise NotFound(f"no {called('queue', asked.name, request.virtual_host)} that is the same as it was")
    now = replace(queue, changed=_changed(queue, arguments.declared(asked.changed), state.kinds))
    if now == queue:
        return Outcome(queue)
    return Outcome(state.change_queue(now, effects))


def _changed(queue: Queue, more: dict[str, Any], kinds: Kinds) -> bytes:
    declared = arguments.load(queue.arguments)
    try:
        found = changed.added(declared, arguments.load(queue.changed), more)
        queue_arguments.check_together(said(changed.table_now(declared, found)), kinds)
    except Wrong as error:
        thing = called("queue", queue.name, queue.virtual_host)
        raise PreconditionFailed(f"invalid arg '{error.name}' for {thing}: {error.why}") from None
    return arguments.dump(found)
