"""Whether an exchange has a binding: to a queue, with a routing key, with both, or any (Qpid's exchange.bound).

Keys are compared as they are, also where an exchange type takes them for patterns: bindings are asked for, not where a
message would go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.predeclared import DEFAULT_EXCHANGE
from services.router.topology.virtual_host import VirtualHost


@dataclass(frozen=True, slots=True)
class Found:
    """What is not there, or whether there is such a binding."""

    unknown_exchange: bool = False
    unknown_queue: bool = False
    is_bound: bool = False


def find_binding(host: VirtualHost, exchange: str, key: str | None, queue: str | None) -> Found:
    """`key` and `queue` None: whatever they are."""
    if exchange not in host.sources:
        return Found(unknown_exchange=True)
    if queue is not None and queue not in host.queues:
        return Found(unknown_queue=True)
    to = None if queue is None else host.queues[queue].id
    return Found(
        is_bound=any(
            to in (None, binding.destination) and key in (None, binding.routing_key)
            for binding in _bindings(host, exchange)
        )
    )


def _bindings(host: VirtualHost, exchange: str) -> Iterable[Binding]:
    if exchange == DEFAULT_EXCHANGE:
        return (Binding(queue.id, queue.name) for queue in host.queues.values())
    return host.sources[exchange].bindings
