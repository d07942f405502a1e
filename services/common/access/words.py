"""Names what is refused, in RabbitMQ's words: "write access to exchange 'x' in vhost '/'"."""

from __future__ import annotations

from services.common.access.action import Action, Kind
from services.common.access.asked import Asked, Principal
from services.common.access.needs import ANY, Need, named, needs_of
from services.common.access.verdict import Verdict

_BY_NAME = {
    Kind.QUEUE: "queue",
    Kind.EXCHANGE: "exchange",
    Kind.VIRTUALHOST: "vhost",
    Kind.USER: "user",
    Kind.GROUP: "group",
}


def need_refused(need: Need, virtual_host: str) -> str:
    """For one permission."""
    return f"{need.permission} access to {_BY_NAME[need.kind]} '{need.name}' in vhost '{virtual_host}'"


def topic_refused(need: Need, virtual_host: str, key: str) -> str:
    """For one permission on a routing key."""
    return f"{need.permission} access to topic '{key}' in exchange '{need.name}' in vhost '{virtual_host}'"


def refused(asked: Asked) -> str:
    """For a whole question: the first permission that it needs."""
    if asked.action is Action.LOOK:
        return need_refused(named(Need(ANY, asked.kind, asked.name)), asked.virtual_host)
    if needs := needs_of(asked):
        # For a binding, Broker-J's rules are about its source exchange.
        return need_refused(needs[-1] if asked.action in {Action.BIND, Action.UNBIND} else needs[0], asked.virtual_host)
    if asked.action is Action.ACCESS and asked.kind in _BY_NAME:
        return f"access to {_BY_NAME[asked.kind]} '{asked.name}'"
    kind = _BY_NAME.get(asked.kind, asked.kind.value.lower())
    what = f"{kind} '{asked.name}'" if asked.name else kind
    verb = "access" if asked.action is Action.ACCESS else f"{asked.action.value.lower()} access"
    return f"{verb} to {what}"


def refusal(principal: Principal, asked: Asked, verdict: Verdict) -> str:
    """The text for the client: what was refused, to which user, and no more."""
    return f"{verdict.refused or refused(asked)} refused for user '{principal.name}'"
