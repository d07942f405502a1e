"""queue.delete (AMQP 0-9-1, 1.7.2.9). Whether it is unused and empty, the queue process has checked already."""

from __future__ import annotations

from dataclasses import replace

from services.common.topology.definitions import Queue
from services.common.topology.life import NOBODY, Party, Scope, of_connection
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
    """Ends what goes with the connection that asks, and with its sessions."""
    end_bound(state, request.connection, effects)
    return Outcome()


def close_session(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """The same of a session, and of its links."""
    _end(state, access.asker(request).party(Scope.SESSION), effects)
    return Outcome()


def close_link(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """The same of a link."""
    _end(state, access.asker(request).party(Scope.LINK), effects)
    return Outcome()


def end_bound(state: TopologyState, connection: str, effects: Effects) -> None:
    """An exclusive queue goes with its connection, durable or not (AMQP 0-9-1, 1.7.2.1.5)."""
    _end(state, of_connection(connection), effects)


def _end(state: TopologyState, whose: Party, effects: Effects) -> None:
    """Deletes the queues that go with them; those that they have made are kept by others from now on, or by nobody."""
    for queue_id in list(state.bound_to.get(whose.connection, ())):
        queue = state.queues[queue_id]
        if queue.life.until.is_of(whose):
            state.remove_queue(queue, effects)
        elif queue.life.maker.is_of(whose):
            state.change_queue(replace(queue, life=queue.life._replace(maker=NOBODY)), effects)
