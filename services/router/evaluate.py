"""Where messages go by a topology, as the contract says it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from services.common.topology.message import asked_about
from services.common.topology.route import Route
from services.router.topology.topology import Topology
from services.rpc.router_pb2 import Message, Routed

_AT_ONCE: Final = 500  # looks at messages, as a gateway's portion has words


async def evaluate(topology: Topology, messages: Iterable[Message]) -> list[Routed]:
    """An answer for each message, in order; raises BrokerError for properties that their format cannot read.

    Others have their turns where many selectors are asked: an answer is as old as the question, or newer.
    """
    answers: list[Routed] = []
    looks = 0
    for message in messages:
        route = _route(topology, message)
        answers.append(_routed_message(route) if route else Routed(unknown_virtual_host=True))
        looks += route.looks if route else 0
        if looks >= _AT_ONCE:
            looks = 0
            await asyncio.sleep(0)
    return answers


def _route(topology: Topology, message: Message) -> Route | None:
    address = message.virtual_host, message.exchange, message.routing_key
    asked = asked_about(*address, message.format, message.properties)
    return topology.route(*address, asked, tuple(message.more_keys))


def _routed_message(route: Route) -> Routed:
    return Routed(
        unknown_exchange=route.unknown_exchange,
        internal=route.internal,
        queue_ids=route.queue_ids,
        not_local=route.not_local,
        needs_headers=route.needs_headers,
        passed_on=route.passed_on,
    )
