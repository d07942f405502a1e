"""RabbitMQ's routes put together."""

from __future__ import annotations

from collections.abc import Iterator

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
from services.mgmt.rest.rabbitmq.paths import is_ours
from services.mgmt.rest.rabbitmq.permissions import permission_routes, topic_permission_routes
from services.mgmt.rest.rabbitmq.policies import policy_routes
from services.mgmt.rest.rabbitmq.queues import consumer_routes, queue_changes, queue_routes
from services.mgmt.rest.rabbitmq.users import user_changes, user_routes, who_routes
from services.mgmt.rest.rabbitmq.virtual_hosts import grants_in_virtual_hosts, virtual_host_routes
from services.mgmt.stack_health import StackHealth


def rabbitmq_routes(doors: Doors, broker: Broker, health: StackHealth) -> Late:
    """Below /api."""
    return Late(is_ours, lambda: [route for router in _routers(doors, broker, health) for route in router.routes])


def _routers(doors: Doors, broker: Broker, health: StackHealth) -> Iterator[APIRouter]:
    for routes in (
        definition_routes,
        virtual_host_routes,
        grants_in_virtual_hosts,
        user_changes,
        user_routes,
        permission_routes,
        topic_permission_routes,
        virtual_host_limit_routes,
        user_limit_routes,
        exchange_routes,
        bound_routes,
        exchange_changes,
        queue_routes,
        queue_changes,
        consumer_routes,
        message_routes,
        connection_routes,
        channel_routes,
        overview_routes,
        aliveness_routes,
    ):
        yield routes(doors, broker)
    yield from binding_routes(doors, broker)
    yield from policy_routes(doors, broker)
    yield health_routes(doors, broker, health)
    yield node_routes(doors, health)
    yield from absent_routes(doors)
    yield who_routes(doors)
