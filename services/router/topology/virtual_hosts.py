"""Creating and deleting virtual hosts. Both are done when it is so already."""

from __future__ import annotations

from services.common.topology import records
from services.common.topology.definitions import Host
from services.common.topology.predeclared import is_predeclared
from services.router.topology.effects import Effects, Happened
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.rpc.router_pb2 import ChangeRequest


def create_virtual_host(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """With the predeclared exchanges, which are no records: nobody can change them."""
    name = request.create_virtual_host.name
    if name in state.virtual_hosts:
        return Outcome()
    host = state.add_host(Host(name, state.new_id()))
    effects.records[records.virtual_host_key(name)] = records.virtual_host_record(host.definition)
    effects.news.virtual_hosts[name] = True
    effects.happened.append(Happened(created=True, what=name))
    return Outcome(created=True)


def delete_virtual_host(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """With everything in it."""
    name = request.delete_virtual_host.name
    host = state.virtual_hosts.get(name)
    if host is None:
        return Outcome()
    for queue in list(host.queues.values()):
        state.remove_queue(queue, effects)
    for exchange in list(host.sources):
        # Auto-delete exchanges go by themselves when what they were bound to goes.
        if exchange in host.sources and not is_predeclared(exchange):
            host.remove_exchange(exchange, effects)
    host.remove_remaining(effects)
    effects.records.update((records.policy_key(policy), None) for policy in host.policies)
    del state.virtual_hosts[name]
    effects.records[records.virtual_host_key(name)] = None
    effects.news.virtual_hosts[name] = False
    effects.happened.append(Happened(created=False, what=name))
    return Outcome()
