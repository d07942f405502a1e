"""queue.delete (AMQP 0-9-1, 1.7.2.9). Whether it is unused and empty, the queue process has checked already."""

from __future__ import annotations

from services.common.topology.definitions import Queue
from services.common.topology.life import Scope
from services.router.topology import access
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.rpc.router_pb2 import ChangeRequest


def delete_queue(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """By id: only that incarnation; else whichever has the name. Raises ResourceLocked; a missing one is no error."""
    if queue := _find(state, request):
        access.check_owner(queue, access.asker(request))
        state.remove_queue(queue, effects)
    return Outcome()


def _find(state: TopologyState, request: ChangeRequest) -> Queue | None:
    delete = request.delete_queue
    if delete.queue_id:
        return state.queues.get(delete.queue_id)
    return state.host(request.virtual_host).queues.get(delete.name)


def close_connection(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Deletes the queues that go with the connection that asks."""
    delete_bound(state, request.connection, effects)
    return Outcome()


def close_session(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Deletes the queues that go with the session that asks."""
    session = access.asker(request).party(Scope.SESSION)
    for queue_id in list(state.bound_to.get(request.connection, ())):
        if (queue := state.queues[queue_id]).life.until == session:
            state.remove_queue(queue, effects)
    return Outcome()


def delete_bound(state: TopologyState, connection: str, effects: Effects) -> None:
    """An exclusive queue goes with its connection, durable or not (AMQP 0-9-1, 1.7.2.1.5)."""
    for queue_id in list(state.bound_to.get(connection, ())):
        state.remove_queue(state.queues[queue_id], effects)
