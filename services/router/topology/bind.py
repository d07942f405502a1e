"""queue.bind, exchange.bind and their opposites (AMQP 0-9-1, 1.7.2.3 and 1.7.2.5; RabbitMQ's exchange.bind)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.arguments.binding import check
from services.common.arguments.reading import Wrong
from services.common.errors import NotFound, PreconditionFailed
from services.common.message import arguments
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.life import Asker
from services.router.topology import access, names
from services.router.topology.effects import Effects
from services.router.topology.names import called
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost
from services.rpc.router_pb2 import Bind, ChangeRequest


def bind(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises NotFound, AccessRefused (default exchange), ResourceLocked, PreconditionFailed (unusable arguments)."""
    host = state.host(request.virtual_host)
    table = arguments.declared(request.bind.arguments)
    binding = _read(host, request.bind, access.asker(request))
    if binding in host.sources[request.bind.source].bindings:
        return Outcome()  # whatever it says: what was taken once is heeded
    check_arguments(table, request.bind.source, request.virtual_host)
    host.add_binding(request.bind.source, binding, effects)
    return Outcome(created=True)


def unbind(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises AccessRefused, ResourceLocked. Undoing what does not exist succeeds, as in RabbitMQ."""
    host = state.host(request.virtual_host)
    try:
        binding = _read(host, request.unbind, access.asker(request))
    except NotFound:
        return Outcome()
    if binding in host.sources[request.unbind.source].bindings:
        host.remove_binding(request.unbind.source, binding, effects)
    return Outcome()


def check_arguments(table: Mapping[str, Any], source: str, virtual_host: str) -> None:
    """Raises PreconditionFailed for what a binding of that exchange cannot say."""
    try:
        check(table)
    except Wrong as error:
        thing = called("exchange", source, virtual_host)
        raise PreconditionFailed(f"invalid arg '{error.name}' for a binding of {thing}: {error.why}") from None


def _read(host: VirtualHost, asked: Bind, whose: Asker) -> Binding:
    names.check_not_default(asked.source)
    if asked.to_exchange:
        names.check_not_default(asked.destination)
    arguments.load(asked.arguments)
    access.find_exchange(host, asked.source)
    if asked.to_exchange:
        access.find_exchange(host, asked.destination)
        return Binding(asked.destination, asked.routing_key, asked.arguments)
    queue = access.find_queue(host, asked.destination, whose)
    return Binding(queue.id, asked.routing_key, asked.arguments)
