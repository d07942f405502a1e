"""What another router decided, carried out from its records: no checks, no effects, and nothing follows by itself.

A record says how something is, not how it came about, so several changes of one thing may be given as the last of
them. What a deletion takes along has records of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from services.common.topology import records
from services.common.topology.exchanges.exchange_type import Binding
from services.router.topology.state import TopologyState, Unreadable

Change = tuple[str, str, bytes | None]
"""Kind and key of a record, and its value: None when it is gone."""


def replay(state: TopologyState, changes: Iterable[Change]) -> list[Unreadable]:
    """Makes `state` what the records say, but for those that it gives: they cannot be read.

    What refers to something goes before it, and comes after it.
    """
    by_kind: dict[str, list[tuple[str, bytes | None]]] = {kind: [] for kind in records.KINDS}
    for kind, key, value in changes:
        by_kind[kind].append((key, value))
    drops = [(kind, key, None) for kind in reversed(records.KINDS) for key, value in by_kind[kind] if value is None]
    puts = [(kind, key, value) for kind in records.KINDS for key, value in by_kind[kind] if value is not None]
    return [unreadable for change in (*drops, *puts) if (unreadable := _carry_out(state, *change))]


def _carry_out(state: TopologyState, kind: str, key: str, value: bytes | None) -> Unreadable | None:
    try:
        if value is None:
            _DROP[kind](state, key)
        else:
            _PUT[kind](state, value)
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with it, the rest is evaluated
        return Unreadable(kind, key, fault)
    return None


def _put_virtual_host(state: TopologyState, value: bytes) -> None:
    definition = records.read_virtual_host(value)
    if known := state.virtual_hosts.get(definition.name):
        known.definition = definition  # what the former one held has records of its own
    else:
        state.add_host(definition)


def _put_policy(state: TopologyState, value: bytes) -> None:
    policy = records.read_policy(value)
    host = state.virtual_hosts[policy.virtual_host]
    host.policies.set(policy)
    state.govern(host)


def _put_exchange(state: TopologyState, value: bytes) -> None:
    exchange = records.read_exchange(value)
    host = state.virtual_hosts[exchange.virtual_host]
    known = host.sources.get(exchange.name)
    if known and known.definition != exchange:
        host.drop_exchange(exchange.name)
        known = None
    if not known:
        host.restore_exchange(exchange)


def _put_queue(state: TopologyState, value: bytes) -> None:
    queue = records.read_queue(value)
    known = state.virtual_hosts[queue.virtual_host].queues.get(queue.name)
    if known and known.id != queue.id:
        state.drop_queue(known)
    if queue.id in state.queues:
        state.replace_queue(queue)
    else:
        state.restore_queue(queue)


def _put_binding(state: TopologyState, value: bytes) -> None:
    bound = records.read_binding(value)
    host = state.virtual_hosts[bound.virtual_host]
    if bound.binding not in host.sources[bound.source].bindings:
        host.restore_binding(bound.source, bound.binding)


def _drop_virtual_host(state: TopologyState, key: str) -> None:
    state.virtual_hosts.pop(key, None)


def _drop_policy(state: TopologyState, key: str) -> None:
    virtual_host, operator, name = records.policy_of_key(key)
    if host := state.virtual_hosts.get(virtual_host):
        host.policies.clear(name, operator=operator)
        state.govern(host)


def _drop_exchange(state: TopologyState, key: str) -> None:
    virtual_host, name = json.loads(key)
    host = state.virtual_hosts.get(virtual_host)
    if host and name in host.sources:
        host.drop_exchange(name)


def _drop_queue(state: TopologyState, key: str) -> None:
    virtual_host, name = json.loads(key)
    host = state.virtual_hosts.get(virtual_host)
    if host and (queue := host.queues.get(name)):
        state.drop_queue(queue)


def _drop_binding(state: TopologyState, key: str) -> None:
    virtual_host, name, destination, routing_key, arguments = json.loads(key)
    host = state.virtual_hosts.get(virtual_host)
    source = host.sources.get(name) if host else None
    binding = Binding(destination, routing_key, arguments.encode())
    if host and source and binding in source.bindings:
        host.drop_binding(name, binding)


_PUT: Mapping[str, Callable[[TopologyState, bytes], None]] = {
    records.VIRTUAL_HOST: _put_virtual_host,
    records.POLICY: _put_policy,
    records.EXCHANGE: _put_exchange,
    records.QUEUE: _put_queue,
    records.BINDING: _put_binding,
}
_DROP: Mapping[str, Callable[[TopologyState, str], None]] = {
    records.VIRTUAL_HOST: _drop_virtual_host,
    records.POLICY: _drop_policy,
    records.EXCHANGE: _drop_exchange,
    records.QUEUE: _drop_queue,
    records.BINDING: _drop_binding,
}
