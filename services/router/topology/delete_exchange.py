"""exchange.delete (AMQP 0-9-1, 1.6.2.3). Deleting what does not exist succeeds, as in RabbitMQ."""

from __future__ import annotations

from services.common.errors import AccessRefused, PreconditionFailed
from services.common.topology.predeclared import is_predeclared
from services.router.topology import names
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.rpc.router_pb2 import ChangeRequest


def delete_exchange(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises AccessRefused for a predeclared one, PreconditionFailed for one with bindings when `if_unused`."""
    host, delete = state.host(request.virtual_host), request.delete_exchange
    names.check_not_default(delete.name)
    if is_predeclared(delete.name):
        raise AccessRefused(f"deletion of system {names.called('exchange', delete.name, host.name)} not allowed")
    source = host.sources.get(delete.name)
    if source is None:
        return Outcome()
    if delete.if_unused and source.bindings:
        raise PreconditionFailed(f"{names.called('exchange', delete.name, host.name)} in use")
    host.remove_exchange(delete.name, effects)
    return Outcome()
