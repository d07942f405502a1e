"""Why a message would go where it goes by a topology, as the contract says it."""

from __future__ import annotations

from services.common.errors import NotFound
from services.common.message import arguments, sender_selected
from services.common.topology.message import OfHeaders
from services.router.topology.explain import Hop, Via, Visit, explain
from services.router.topology.topology import Topology
from services.router.topology.virtual_host import VirtualHost
from services.router.wire import bind_message, exchange_message, queue_message
from services.rpc import router_pb2

_VIA = {
    Via.BINDING: router_pb2.BINDING,
    Via.IMPLIED: router_pb2.IMPLIED,
    Via.ALTERNATE: router_pb2.ALTERNATE,
}


def explained(topology: Topology, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
    """Raises NotFound for a virtual host or an exchange that is not there."""
    if (host := topology.virtual_hosts.get(request.virtual_host)) is None:
        raise NotFound(f"no virtual host '{request.virtual_host}'")
    headers = arguments.load(request.headers)
    keys = dict.fromkeys((request.routing_key, *sender_selected.keys_in(headers)))
    explanation = explain(host, request.exchange, keys, OfHeaders(sender_selected.seen(headers)))
    return router_pb2.ExplainReply(
        visits=[_visit(host, visit) for visit in explanation.visits],
        queues=[queue_message(topology.queues[queue]) for queue in explanation.queue_ids],
    )


def _visit(host: VirtualHost, visit: Visit) -> router_pb2.Visit:
    hops = [_hop(host, visit.name, hop) for hop in visit.hops]
    exchange = exchange_message(visit.exchange) if visit.exchange else None
    return router_pb2.Visit(name=visit.name, exchange=exchange, hops=hops)


def _hop(host: VirtualHost, source: str, hop: Hop) -> router_pb2.Hop:
    return router_pb2.Hop(bind=bind_message(host, source, hop.binding), via=_VIA[hop.via])
