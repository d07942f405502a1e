"""What changed in the topology, for the bus."""

from __future__ import annotations

from services.common.bus import facts
from services.common.bus.events import Events
from services.common.topology.definitions import Exchange, Queue
from services.router.topology.effects import Bound, Happened


def tell(events: Events, happened: Happened) -> None:
    """Publishes what has been kept."""
    events.publish(_facts(happened))


def _facts(happened: Happened) -> facts.Facts:
    created, what = happened
    match what:
        case Queue():
            return _queue(what, created=created)
        case Exchange():
            return _exchange(what, created=created)
        case Bound():
            return _binding(what, created=created)
        case str():
            kind = facts.VirtualHostCreated if created else facts.VirtualHostDeleted
            return kind(virtual_host=what)


def _queue(queue: Queue, *, created: bool) -> facts.Facts:
    return (facts.QueueCreated if created else facts.QueueDeleted)(
        virtual_host=queue.virtual_host,
        queue=queue.name,
        queue_id=queue.id,
        partition=queue.partition,
        type=queue.type,
        durable=queue.durable,
        auto_delete=queue.auto_delete,
        exclusive_to=queue.exclusive_to,
    )


def _exchange(exchange: Exchange, *, created: bool) -> facts.Facts:
    return (facts.ExchangeCreated if created else facts.ExchangeDeleted)(
        virtual_host=exchange.virtual_host,
        exchange=exchange.name,
        type=exchange.type,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        internal=exchange.internal,
    )


def _binding(bound: Bound, *, created: bool) -> facts.Facts:
    return (facts.BindingCreated if created else facts.BindingDeleted)(
        virtual_host=bound.virtual_host,
        source=bound.source,
        destination=bound.destination,
        to_exchange=bound.to_exchange,
        routing_key=bound.routing_key,
        arguments=bound.arguments.decode(),
    )
