"""queue.declare (AMQP 0-9-1, 1.7.2.1)."""

from __future__ import annotations

from services.common.arguments import changed
from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.common.partition import partition_of
from services.common.topology.definitions import Queue
from services.router.topology import access, equivalence, names, queue_arguments
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost
from services.rpc.router_pb2 import ChangeRequest, DeclareQueue


def declare_queue(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises NotFound (passive), ResourceLocked, PreconditionFailed, AccessRefused (reserved name)."""
    host, declare = state.host(request.virtual_host), request.declare_queue
    if declare.passive:
        return Outcome(access.find_queue(host, declare.name, request.connection))
    if known := host.queues.get(declare.name):
        _check_same(known, declare, request.connection)
        return Outcome(known)
    _check_room(state, host, declare.name)
    queue = _create(state, host, declare, request.connection)
    state.add_queue(queue, effects)
    return Outcome(queue, created=True)


def _check_room(state: TopologyState, host: VirtualHost, name: str) -> None:
    """In RabbitMQ's words."""
    most = state.most_queues(host.name)
    if most is not None and len(host.queues) >= most:
        raise PreconditionFailed(
            f"cannot declare queue '{name}': queue limit in vhost '{host.name}' ({most}) is reached"
        )


def _create(state: TopologyState, host: VirtualHost, declare: DeclareQueue, connection: str) -> Queue:
    if declare.name:
        names.check_new("queue", declare.name, exclusive=declare.exclusive, restored=declare.restored)
    if declare.exclusive and not connection:
        raise PreconditionFailed("an exclusive queue needs a connection to belong to")
    name = declare.name or f"{names.MADE}{state.new_name()}"
    said = queue_arguments.check(arguments.declared(declare.arguments), name, host.name, state.kinds)
    kind = queue_arguments.queue_type(said, name, host.name, durable=declare.durable, exclusive=declare.exclusive)
    return Queue(
        id=state.new_id(),
        virtual_host=host.name,
        name=name,
        partition=partition_of(host.name, name, state.partitions),
        durable=declare.durable,
        exclusive_to=connection if declare.exclusive else "",
        auto_delete=declare.auto_delete,
        arguments=declare.arguments,
        type=kind,
    )


def _check_same(known: Queue, declare: DeclareQueue, connection: str) -> None:
    if known.exclusive_to != (connection if declare.exclusive else ""):
        raise access.locked(known)
    thing = names.called("queue", known.name, known.virtual_host)
    equivalence.check_property("durable", thing, declare.durable, known.durable)
    equivalence.check_property("auto_delete", thing, declare.auto_delete, known.auto_delete)
    received = queue_arguments.compared(arguments.load(declare.arguments))
    if known.changed and received == queue_arguments.compared(
        arguments.load(changed.now(known.arguments, known.changed))
    ):
        return
    current = queue_arguments.compared(arguments.load(known.arguments))
    equivalence.check_arguments(queue_arguments.COMPARED, thing, received, current)
