"""Where messages go by a topology, as the contract says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from services.common.message import format_named
from services.common.topology.route import Route
from services.router.topology.topology import Topology
from services.rpc.router_pb2 import Message, Routed


def evaluate(topology: Topology, messages: Iterable[Message]) -> list[Routed]:
    """An answer for each message, in order; raises BrokerError for properties that their format cannot read."""
    return [_routed(topology, message) for message in messages]


def _routed(topology: Topology, message: Message) -> Routed:
    route = topology.route(
        message.virtual_host, message.exchange, message.routing_key, _Headers(message), tuple(message.more_keys)
    )
    return _routed_message(route) if route else Routed(unknown_virtual_host=True)


class _Headers:
    """Of one message: read once, if anybody looks at them."""

    __slots__ = ("_message", "_read")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._read: Mapping[str, Any] | None = None

    def __call__(self) -> Mapping[str, Any]:
        if self._read is None:
            named = self._message.format
            self._read = format_named(named).headers(self._message.properties) if named else {}
        return self._read


def _routed_message(route: Route) -> Routed:
    return Routed(
        unknown_exchange=route.unknown_exchange,
        internal=route.internal,
        queue_ids=route.queue_ids,
        needs_headers=route.needs_headers,
        passed_on=route.passed_on,
    )
