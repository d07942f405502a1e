"""A queue in the place of another one, and bound: in one change, so that who may not have it keeps the other."""

from __future__ import annotations

from dataclasses import replace

from services.common.message import arguments
from services.common.topology.definitions import Queue
from services.common.topology.exchanges.exchange_type import Binding
from services.router.topology import access, names
from services.router.topology.bind import check_arguments
from services.router.topology.declare_queue import check_room, declared, make
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost
from services.rpc.router_pb2 import Bind, ChangeRequest


def replace_queue(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Of one that is declared just so only the binding is made, if it is not there: asked again, it changes nothing.

    Raises as `declare_queue` and `bind` do. What replaces another takes no more room among the queues.
    """
    host, asked, whose = state.host(request.virtual_host), request.replace_queue, access.asker(request)
    _check_source(host, asked.bind)
    if former := host.queues.get(asked.queue.name):
        access.check_owner(former, whose)
    else:
        check_room(state, host, asked.queue.name)
    queue, its = declared(state, host, asked.queue, whose)
    if former and _is_same(former, queue):
        _bind(host, former, asked.bind, effects)
        return Outcome(former)
    binding = _binding(queue, asked.bind)
    host.check_binding(asked.bind.source, binding)
    make(state, host, its, effects, with_queue=0 if former else 1)
    if former:
        state.supersede_queue(former, queue, asked.bind.source, binding, effects)
    else:
        state.add_queue(queue, effects)
        host.add_binding(asked.bind.source, binding, effects)
    return Outcome(queue, created=not former)


def _bind(host: VirtualHost, queue: Queue, asked: Bind, effects: Effects) -> None:
    if (binding := _binding(queue, asked)) not in host.sources[asked.source].bindings:
        host.add_binding(asked.source, binding, effects)


def _binding(queue: Queue, asked: Bind) -> Binding:
    return Binding(queue.id, asked.routing_key, asked.arguments)


def _check_source(host: VirtualHost, asked: Bind) -> None:
    names.check_not_default(asked.source)
    access.find_exchange(host, asked.source)
    check_arguments(arguments.declared(asked.arguments), asked.source, host.name)


def _is_same(former: Queue, queue: Queue) -> bool:
    """Whether nothing but its incarnation differs, and what policies and management say of it."""
    return former == replace(queue, id=former.id, changed=former.changed, policy=former.policy)
