"""Setting and clearing policies: the effective options of queues are other ones from then on, without a restart."""

from __future__ import annotations

from typing import Final

from services.common.access.expression import check_expression
from services.common.arguments import policies
from services.common.arguments.checks import one_of
from services.common.arguments.reading import Wrong
from services.common.errors import NotFound, PreconditionFailed
from services.common.topology import records
from services.common.topology.policies import APPLY_TO, Policy
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost
from services.rpc import router_pb2
from services.rpc.router_pb2 import ChangeRequest

_LONGEST: Final = 255  # bytes of a name


def set_policy(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """In place of another one of its name. Raises NotFound of the virtual host, PreconditionFailed."""
    host, told = state.host(request.virtual_host), request.set_policy
    policy = _read(host, told, state.kinds)
    former = host.policies.get(policy.name, operator=policy.operator)
    if policy == former:
        return Outcome()
    host.policies.set(policy)
    effects.records[records.policy_key(policy)] = records.policy_record(policy)
    _govern(state, host, effects)
    return Outcome(created=former is None)


def clear_policy(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises NotFound."""
    host, key = state.host(request.virtual_host), request.clear_policy
    policy = host.policies.get(key.name, operator=key.operator)
    if policy is None:
        raise NotFound(f"no {_kind(operator=key.operator)} '{key.name}' in vhost '{host.name}'")
    host.policies.clear(key.name, operator=key.operator)
    effects.records[records.policy_key(policy)] = None
    _govern(state, host, effects)
    return Outcome()


def _govern(state: TopologyState, host: VirtualHost, effects: Effects) -> None:
    effects.news.queues.update((queue.id, queue) for queue in state.govern(host))


def _read(host: VirtualHost, told: router_pb2.Policy, kinds: Kinds) -> Policy:
    thing = f"{_kind(operator=told.operator)} '{told.name}' in vhost '{host.name}'"
    try:
        definition = _definition(told, kinds)
        _check_place(told)
    except Wrong as error:
        raise PreconditionFailed(f"invalid {thing}: {error.name} {error.why}") from None
    return Policy(
        host.name,
        told.name,
        told.pattern,
        policies.dumped(definition),
        apply_to=told.apply_to,
        priority=told.priority,
        operator=told.operator,
    )


def _definition(told: router_pb2.Policy, kinds: Kinds) -> policies.Definition:
    try:
        definition = policies.loaded(told.definition)
    except (ValueError, RecursionError):
        raise Wrong("definition", "must be a table, as JSON") from None
    if not isinstance(definition, dict):
        raise Wrong("definition", "must be a table")
    policies.check(definition, operator=told.operator)
    if (overflow := definition.get("overflow")) and (wrong := one_of(kinds.overflow_policies)(overflow)):
        raise Wrong("overflow", wrong)
    return definition


def _check_place(told: router_pb2.Policy) -> None:
    if not 0 < len(told.name.encode()) <= _LONGEST:
        raise Wrong("name", f"must have 1 to {_LONGEST} bytes")
    if wrong := one_of(APPLY_TO)(told.apply_to):
        raise Wrong("apply-to", wrong)
    try:
        check_expression(told.pattern)
    except ValueError as error:
        raise Wrong("pattern", f"is not taken: {error}") from None


def _kind(*, operator: bool) -> str:
    return "operator policy" if operator else "policy"
