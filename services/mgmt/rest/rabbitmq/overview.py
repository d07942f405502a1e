"""/api/overview, /api/nodes and /api/cluster-name."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from services.common import plugins
from services.common.errors import NotFound
from services.common.release import RELEASE
from services.mgmt.access.operations import OBSERVE
from services.mgmt.rabbitmq.columns import shown
from services.mgmt.rabbitmq.counted import Counted
from services.mgmt.rabbitmq.giving import SPOKEN
from services.mgmt.rabbitmq.objects import Row
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.connections import Connected
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.roll import OK
from services.mgmt.stack_health import StackHealth

_CLUSTER: Final = "hopline"
_NODE: Final = "hopline@mgmt"
"""The name of the member that answers: nodes are the members of the stack."""


def overview_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users with one of RabbitMQ's tags: of what they may see."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: overview"], route_class=Route, responses=documented())
    asks: Caller = who_asks(doors)

    @router.get("/overview", summary="Overview")
    async def overview(columns: str = "", caller: Caller = asks) -> JSONResponse:
        """`rabbitmq_version` is the one whose API is spoken; `product_version` is Hopline's."""
        await broker.objects.known(counted=True)
        listeners = await _listeners(broker) if caller.may(OBSERVE) else []
        told = {
            "management_version": SPOKEN,
            "rabbitmq_version": SPOKEN,
            "product_name": "Hopline",
            "product_version": RELEASE,
            "cluster_name": _CLUSTER,
            "node": _NODE,
            "rates_mode": "none",
            "exchange_types": [{"name": name, "enabled": True} for name in plugins.names("exchange_types")],
            "message_stats": {},
            "statistics_db_event_queue": 0,
            "listeners": listeners,
            "contexts": [],
            **await _totals(broker, caller),
        }
        return JSONResponse(shown(told, columns))

    @router.get("/cluster-name", summary="The name of the stack")
    async def cluster_name(_caller: Caller = asks) -> dict[str, str]:
        """It cannot be called otherwise."""
        return {"name": _CLUSTER}

    return router


def node_routes(doors: Doors, health: StackHealth) -> APIRouter:
    """For users who may observe: members of the stack in place of Erlang nodes."""
    asks = who_asks(doors, OBSERVE)
    router = APIRouter(
        prefix=f"{API}/nodes",
        tags=["RabbitMQ: overview"],
        route_class=Route,
        responses=documented(404),
        dependencies=[asks],
    )

    async def rows() -> list[Row]:
        members = (await health.report()).members
        return [_node(name, role, state) for role, its in members.items() for name, state in its.items()]

    @router.get("", summary="Members of the stack")
    async def list_nodes(wanted: Query_) -> Response:
        """Routers, queue processes and gateways, also those that have gone a while ago."""
        return await listed(await rows(), wanted)

    @router.get("/{name:encoded}", summary="A member of the stack")
    async def get_node(name: str, columns: str = "") -> JSONResponse:
        """By its name."""
        found = next((row for row in await rows() if row["name"] == name), None)
        if found is None:
            raise NotFound(f"no member '{name}'")
        return JSONResponse(shown(found, columns))

    return router


async def _totals(broker: Broker, caller: Caller) -> dict[str, Any]:
    objects, counted = broker.objects, Counted(broker)
    hosts = caller.seen(objects)
    queues = [row for host in hosts for row in objects.queues(host)]
    connections = await Connected(broker).of(caller)
    return {
        "queue_totals": counted.totals(hosts),
        "object_totals": {
            "connections": len(connections),
            "channels": sum(len(each.sessions) for each in connections),
            "consumers": sum(len(counted.consumers_of(row)) for row in queues),
            "exchanges": sum(len(objects.exchanges(host)) for host in hosts),
            "queues": len(queues),
        },
    }


async def _listeners(broker: Broker) -> list[Row]:
    return [
        {"node": where.gateway, "protocol": each.port.name, **_address(at)}
        for each in await broker.house.ports.ports()
        for where in each.gateways
        for at in where.at
    ]


def _address(at: str) -> Row:
    host, _, port = at.rpartition(":")
    return {"ip_address": host.strip("[]"), "port": int(port)}


def _node(name: str, role: str, state: str) -> Row:
    return {"name": name, "type": "disc", "role": role, "running": state == OK, "state": state, "partitions": []}
