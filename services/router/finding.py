"""Whether an exchange has a binding by a topology, as the contract asks and says it."""

from __future__ import annotations

from services.common.errors import NotFound
from services.router.topology.find_binding import find_binding
from services.router.topology.topology import Topology
from services.rpc import router_pb2


def found_binding(topology: Topology, request: router_pb2.FindBindingRequest) -> router_pb2.FindBindingReply:
    """Raises NotFound for a virtual host that is not there."""
    if (host := topology.virtual_hosts.get(request.virtual_host)) is None:
        raise NotFound(f"no virtual host '{request.virtual_host}'")
    key = request.routing_key if request.HasField("routing_key") else None
    queue = request.queue if request.HasField("queue") else None
    found = find_binding(host, request.exchange, key, queue)
    return router_pb2.FindBindingReply(
        unknown_exchange=found.unknown_exchange, unknown_queue=found.unknown_queue, is_bound=found.is_bound
    )
