"""Where messages go by a topology, as the contract says it."""

from __future__ import annotations

from collections.abc import Iterable

from services.common.topology.message import asked_about
from services.common.topology.route import Route
from services.router.topology.topology import Topology
from services.rpc.router_pb2 import Message, Routed


def evaluate(topology: Topology, messages: Iterable[Message]) -> list[Routed]:
    """An answer for each message, in order; raises BrokerError for properties that their format cannot read."""
    return [_routed(topology, message) for message in messages]


def _routed(topology: Topology, message: Message) -> Routed:
    address = message.virtual_host, message.exchange, message.routing_key
    asked = asked_about(*address, message.format, message.properties)
    route = topology.route(*address, asked, tuple(message.more_keys))
    return _routed_message(route) if route else Routed(unknown_virtual_host=True)


def _routed_message(route: Route) -> Routed:
    return Routed(
        unknown_exchange=route.unknown_exchange,
        internal=route.internal,
        queue_ids=route.queue_ids,
        needs_headers=route.needs_headers,
        passed_on=route.passed_on,
    )
