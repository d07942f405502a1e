"""RabbitMQ's routes put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fastapi import APIRouter

from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.late import Late
from services.mgmt.rest.rabbitmq.absent import absent_routes
from services.mgmt.rest.rabbitmq.bindings import binding_routes
from services.mgmt.rest.rabbitmq.connections import channel_routes, connection_routes
from services.mgmt.rest.rabbitmq.definitions import definition_routes
from services.mgmt.rest.rabbitmq.exchanges import bound_routes, exchange_changes, exchange_routes
from services.mgmt.rest.rabbitmq.health import aliveness_routes, health_routes
from services.mgmt.rest.rabbitmq.limits import user_limit_routes, virtual_host_limit_routes
from services.mgmt.rest.rabbitmq.messages import message_routes
from services.mgmt.rest.rabbitmq.overview import node_routes, overview_routes
from services.mgmt.rest.rabbitmq.paths import first_word
from services.mgmt.rest.rabbitmq.permissions import permission_routes, topic_permission_routes
from services.mgmt.rest.rabbitmq.policies import policy_routes
from services.mgmt.rest.rabbitmq.queues import consumer_routes, queue_changes, queue_routes
from services.mgmt.rest.rabbitmq.users import user_changes, user_routes, who_routes
from services.mgmt.rest.rabbitmq.virtual_hosts import grants_in_virtual_hosts, virtual_host_routes
from services.mgmt.stack_health import StackHealth

Make = Callable[[], APIRouter | Iterable[APIRouter]]


def rabbitmq_routes(doors: Doors, broker: Broker, health: StackHealth) -> Iterator[Late]:
    """Below /api: each with the first words of its paths."""
    for words, routes in _OF_THE_BROKER:
        yield _late(words, partial(routes, doors, broker))
    yield _late("health", lambda: health_routes(doors, broker, health))
    yield _late("nodes", lambda: node_routes(doors, health))
    yield _late("parameters global-parameters", lambda: absent_routes(doors))
    yield _late("whoami", lambda: who_routes(doors))


def _late(words: str, make: Make) -> Late:
    first = frozenset(words.split())
    return Late(
        lambda path: first_word(path) in first, lambda: [route for each in _all(make()) for route in each.routes]
    )


def _all(made: APIRouter | Iterable[APIRouter]) -> Iterable[APIRouter]:
    return [made] if isinstance(made, APIRouter) else made


_OF_THE_BROKER: tuple[tuple[str, Callable[[Doors, Broker], APIRouter | Iterable[APIRouter]]], ...] = (
    ("definitions", definition_routes),
    ("vhosts", virtual_host_routes),
    ("vhosts", grants_in_virtual_hosts),
    ("users", user_changes),
    ("users", user_routes),
    ("permissions", permission_routes),
    ("topic-permissions", topic_permission_routes),
    ("vhost-limits", virtual_host_limit_routes),
    ("user-limits", user_limit_routes),
    ("exchanges", exchange_routes),
    ("exchanges", bound_routes),
    ("exchanges", exchange_changes),
    ("queues", queue_routes),
    ("queues", queue_changes),
    ("consumers", consumer_routes),
    ("exchanges queues", message_routes),
    ("connections vhosts", connection_routes),
    ("channels vhosts", channel_routes),
    ("overview cluster-name", overview_routes),
    ("aliveness-test", aliveness_routes),
    ("bindings", binding_routes),
    ("policies operator-policies", policy_routes),
)
